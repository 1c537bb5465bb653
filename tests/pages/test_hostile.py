"""What nobody sends by accident: hostile texts, broken forms and addresses. Nothing of it is an error of ours."""

from __future__ import annotations

from uuid import uuid4

from approvals.models import Attempt, Decision
from runs.ledger import load
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.pages.test_review import address, approval, form
from tests.pages.test_run import stuck
from tests.people import House

HOSTILE = "<script>alert(1)</script>\u202e<img src=x onerror=alert(1)> \u200bשלום 重复"


def test_any_text_can_be_a_reason(house: House, sign_in: SignIn) -> None:
    client = sign_in(house.approver)
    for reason in ("a NUL \x00 in the middle", HOSTILE, "x" * 4000):
        run = house.waiting()
        answer = client.post(address(run), {**form(client, run), "decision": "reject", "reason": reason})
        page = client.get(f"/runs/{run.pk}/")

        assert (answer.status_code, page.status_code) == (302, 200)
        kept = reason.replace("\x00", "\N{REPLACEMENT CHARACTER}")
        assert Decision.objects.latest("at").reason == kept
        html = page.content.decode()
        assert "<script>alert" not in html and "<img src=x" not in html
        assert "\u202e" not in html and ("U+202E" in html) == ("\u202e" in reason)


def test_a_reason_has_an_end(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.approver)

    answer = client.post(address(run), {**form(client, run), "decision": "reject", "reason": "x" * 4001})

    assert answer.status_code == 422
    assert "Use at most 4000 characters" in read(answer).part("errors").text


BROKEN: tuple[dict[str, str], ...] = (
    {"submission": "no id"}, {"submission": ""}, {"digest": ""}, {"digest": "x\x00"}, {"conditions": "y"},
    {"decision": "take_back"}, {"decision": "\x00"},
)  # fmt: skip


def test_a_broken_form_is_refused_and_a_wrong_version_does_no_harm(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    sent = approval(client, run)

    for changed in BROKEN:
        assert client.post(address(run), {**sent, **changed}).status_code in (400, 409, 422), changed

    assert (Decision.objects.count(), Attempt.objects.count()) == (0, len(BROKEN))
    assert client.post(address(run), {**sent, "run_seq": "9" * 40}).status_code == 302


def test_a_forms_id_is_good_for_one_person_and_one_thing(house: House, sign_in: SignIn) -> None:
    first, second, client = house.waiting("1"), house.waiting("2"), sign_in(house.approver)
    sent = {**form(client, first), "decision": "reject", "reason": "not this supplier"}
    client.post(address(first), sent)

    other = {
        **form(client, second),
        "decision": "reject",
        "reason": "not this one",
        "submission": sent["submission"],
    }

    assert client.post(address(second), other).status_code == 400
    assert Decision.objects.count() == 1


ADDRESSES = (
    "/inbox/?view=%00&agent=%00&risk=x&q=%00&page=-1",
    "/inbox/?page=99999999999999999999",
    "/inbox/notices/?since=no",
    "/audit/?run=%00&page=0&action=%00",
    "/runs/{run}/?older=x&saw=9999999999999&done=%00",
    "/runs/{run}/events/?type=%00&from=x",
    "/runs/{run}/notices/?seq=x",
    "/runs/{run}/plan/1/?base=77",
    "/runs/{run}/handoff/?format=xml",
)


def test_any_address_is_answered(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)

    answers = {address_: client.get(address_.format(run=run.pk)).status_code for address_ in ADDRESSES}

    assert answers == dict.fromkeys(ADDRESSES, 200)


def test_a_conclusion_about_another_effect_is_not_there(house: House, world: World, sign_in: SignIn) -> None:
    run, client = stuck(house, world), sign_in(house.operator)
    page = read(client.get(f"/runs/{run.pk}/effects/1/reconcile/"))
    sent = {
        **form_of(page, testid="conclusion-form").sends(),
        "conclusion": "happened",
        "submission": str(uuid4()),
    }

    assert client.post(f"/runs/{run.pk}/effects/2/reconcile/", sent).status_code == 404
    assert client.post(f"/runs/{run.pk}/effects/1/reconcile/", {**sent, "intent_seq": "2"}).status_code == 409
    assert load(run.pk).effects[1].receipt is None
