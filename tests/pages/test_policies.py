"""The pages about policies: reading, writing another version, trying it, and releasing it."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from accounts.groups import make_group
from accounts.rights import Right, grant_right
from approvals.models import Attempt, PolicyRelease, PolicyVersion, Request
from runs import actions
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import State
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.pages.test_again import aged
from tests.people import PASSWORD, House, advance

URL = "/policies/payer/"
TEXT = json.dumps(
    {
        "rules": [
            {"name": "dear", "when": 'cost >= money("100.00")', "needed": 2, "not_by": ["principal"]},
            {"name": "books", "when": 'cost >= money("200.00")', "groups": ["Finance"]},
        ],
        "checks": [
            {"name": "limit", "kind": "soft", "must": 'cost <= money("240")', "sentence": "At most 240."}
        ],
    },
    indent=1,
)


@pytest.fixture
def manager(house: House, sign_in: SignIn) -> Client:
    """The viewer, who manages the policies of the agent. There is the group that these name."""
    make_group(tenant=house.tenant, title="Finance", actor=None, now=database_now())
    grant_right(to=house.viewer, right=Right.MANAGE_POLICIES, obj=house.agent, actor=None, now=database_now())
    return sign_in(house.viewer)


def keep(client: Client, text: str = TEXT, reason: str = "two pairs of eyes") -> str:
    """Keep a version by its form, and say where that leads."""
    sent = {"submission": str(uuid4())}
    answer = client.post(f"{URL}new/", {**sent, "text": text, "reason": reason})
    assert answer.status_code == 302, read(answer).part("errors").text
    return str(answer["Location"])


def release(client: Client, url: str, **other: str) -> int:
    sent = read(client.get(url)).part("release").sends()
    return client.post(url, {**sent, "reason": "as decided on Monday", **other}).status_code


def test_who_may_see_runs_reads_which_policy_counts_and_changes_nothing(
    house: House, sign_in: SignIn
) -> None:
    client = sign_in(house.operator)
    assert "payer" in read(client.get("/policies/")).part("policies").text
    page = read(client.get(URL))
    assert "The agent’s own counts" in page.part("in-force").text
    assert "Manage policies" in page.part("why-not").text
    assert not read(client.get(f"{URL}new/")).all("textarea")
    answer = client.post(
        f"{URL}new/", {"text": TEXT, "reason": "long enough words", "submission": str(uuid4())}
    )
    assert answer.status_code == 403 and not PolicyVersion.objects.exists()
    assert Attempt.objects.get().refusal == "not_allowed"


@pytest.mark.parametrize("path", ["", "new/", "0/", "1/"])
def test_what_is_foreign_is_not_there(house: House, sign_in: SignIn, path: str) -> None:
    for who in (house.stranger,):
        client = sign_in(who)
        foreign = client.get(f"{URL}{path}?of=acme")
        assert foreign.status_code == 404
        assert client.post(f"{URL}{path}?of=acme").status_code in (404, 405)
    assert sign_in(house.operator).get(f"/policies/nobody/{path}").status_code == 404


def test_from_writing_to_a_request_under_it(house: House, manager: Client) -> None:
    run = house.waiting()
    url = keep(manager)
    page = read(manager.get(url))
    assert (
        "dear: 2 approvals" in page.part("rules").text
        and "By members of: Finance." in page.part("rules").text
    )
    assert "1 open request ends." in page.part("ends").text and run.pk in page.part("release").text
    assert "It is not in force" in page.part("state").text
    assert (
        "Of the last 1 plans it would have asked people for 1; the one in force asks for 1."
        in page.part("tried").text
    )
    assert "2 people; 1 from Finance; check fails: limit" in page.part("tried").text

    assert release(manager, url) == 302
    assert "This policy is in force." in read(manager.get(url)).part("state").text
    history = read(manager.get(URL))
    assert (
        "as decided on Monday" in history.part("releases").text and "Viewer" in history.part("releases").text
    )

    changed = "The policy changed from 1 to payer/held/1. Another plan is needed"
    for page_of in (reverse("plan-review", args=[run.pk, 1]), reverse("run", args=[run.pk]), "/inbox/"):
        assert changed in read(manager.get(page_of)).text, "each page knows it before the run is marked"
    shown = read(manager.get(reverse("run", args=[run.pk])))
    assert "Wait: a worker makes another plan." in shown.part("next-safe-action").text
    actions.void_outdated(10)
    assert advance(run).state is State.WAITING_APPROVAL
    told = read(manager.get(reverse("run", args=[run.pk]))).text
    assert "The policy changed from 1 to payer/held/1." in told


def test_the_trial_counts_what_the_limit_would_refuse(house: House, manager: Client) -> None:
    run = house.scripted([{"tool": "pay_by_key", "order": str(n)} for n in (1, 2)])
    house.waiting()
    page = read(manager.get(keep(manager, TEXT[:-1] + ', "limits": {"irreversible": 1}}')))
    tried = page.part("tried")
    assert (
        "It would refuse 1 plan for too many changes that cannot be undone; the one in force refuses 0."
        in tried.text
    )
    (row,) = [row for row in tried.one("tbody").all("tr") if run.goal in row.text]
    assert "refused: the agent has to split it" in row.text
    without = read(manager.get(keep(manager, TEXT))).part("tried").text
    assert "refuse" not in without


def test_the_review_page_says_who_is_asked_and_takes_a_tick_for_a_soft_check(
    house: House, manager: Client, sign_in: SignIn
) -> None:
    release(manager, keep(manager, TEXT.replace('"needed": 2', '"needed": 1').replace('["Finance"]', "[]")))
    run, client = house.waiting(), sign_in(house.approver)
    url = reverse("plan-review", args=[run.pk, 1])
    page = read(client.get(url))
    assert "“dear”, “books”" in page.part("asked-by").text and "At most 240." in page.part("overrides").text
    sent = form_of(page, testid="decision-form").sends() | {"decision": "approve", "phrase": "250.00 2000"}
    state = load(run.pk)
    assert state.plan is not None
    sent["phrase"] = " ".join(step.phrase for step in state.plan.plan.steps if step.phrase)
    answer = client.post(url, {**sent, "reason": "it is urgent today"})
    assert answer.status_code == 422 and "limit" in read(answer).part("errors").text
    answer = client.post(url, {**sent, "override": "limit"})
    assert answer.status_code == 422, "no reason was given"
    answer = client.post(url, {**sent, "override": "limit", "reason": "it is urgent today"})
    assert answer.status_code == 302
    assert "although it fails “limit”" in read(client.get(reverse("run", args=[run.pk]))).text


def test_an_override_after_an_old_sign_in_keeps_its_words_and_ticks_nothing(
    house: House, manager: Client, sign_in: SignIn
) -> None:
    soft = TEXT.replace('"needed": 2', '"needed": 1').replace('["Finance"]', "[]")
    release(manager, keep(manager, soft))
    run, client = house.waiting(), aged(sign_in(house.approver))
    url = reverse("plan-review", args=[run.pk, 1])
    sent = form_of(read(client.get(url)), testid="decision-form").sends()
    sent |= {
        "decision": "approve",
        "phrase": "250.00 2000",
        "override": "limit",
        "reason": "it is urgent today",
    }
    again = client.post(url, sent)["Location"]
    assert again.startswith("/login/again/") and Attempt.objects.latest("at").refusal == "sign_in_too_old"

    assert client.post(again, {"password": PASSWORD})["Location"] == url
    page = read(client.get(url))
    assert page.one("textarea", name="reason").text == "it is urgent today"
    assert not [box for box in page.part("overrides").all("input") if "checked" in box.attrs]
    sent["submission"] = form_of(page, testid="decision-form").sends()["submission"]
    assert client.post(url, {**sent, "override": ""}).status_code == 422
    assert client.post(url, sent).status_code == 302
    assert load(run.pk).requests[-1].decisions[0].overrides == ("limit",)


def test_a_document_that_is_none_comes_back_as_it_was_typed(house: House, manager: Client) -> None:
    wrong = '{"rules": [{"name": "a", "when": "cost > 5"}, {"name": "b", "when": "[1].all(x, true)"}]}  <b>'
    for text, said in ((wrong, "JSON"), (wrong.removesuffix("  <b>"), "loops")):
        sent = {"text": text, "reason": "long enough words", "submission": str(uuid4())}
        answer = manager.post(f"{URL}new/", sent)
        assert answer.status_code == 422 and said in read(answer).part("errors").text
        assert answer.context["values"] == {"text": text, "reason": "long enough words"}
    assert not PolicyVersion.objects.exists() and Attempt.objects.filter(refusal="form").count() == 2


def test_a_release_is_refused_where_what_it_ends_has_changed(house: House, manager: Client) -> None:
    url = keep(manager)
    sent = read(manager.get(url)).part("release").sends()
    house.waiting()
    answer = manager.post(url, {**sent, "reason": "as decided on Monday"})
    page = read(answer)
    assert answer.status_code == 409 and "Not released." in page.part("conflict").text
    assert "1 open request ends." in page.part("ends").text
    assert answer.context["values"] == {"reason": "as decided on Monday"}
    assert not PolicyRelease.objects.exists() and Attempt.objects.get().refusal == "stale"


def test_a_form_sent_twice_is_one_version_and_one_release(house: House, manager: Client) -> None:
    sent = {"text": TEXT, "reason": "long enough words", "submission": str(uuid4())}
    assert len({manager.post(f"{URL}new/", sent)["Location"] for _ in range(2)}) == 1
    form = read(manager.get(f"{URL}1/")).part("release").sends() | {"reason": "as decided on Monday"}
    assert {manager.post(f"{URL}1/", form).status_code for _ in range(2)} == {302}
    assert (PolicyVersion.objects.count(), PolicyRelease.objects.count()) == (1, 1)
    other = manager.post(f"{URL}new/", {**sent, "submission": form["submission"]})
    assert other.status_code == 400 and PolicyVersion.objects.count() == 1


def test_the_own_policy_can_be_made_to_count_again(house: House, manager: Client) -> None:
    release(manager, keep(manager))
    assert release(manager, f"{URL}0/") == 302
    assert "The agent’s own counts" in read(manager.get(URL)).part("in-force").text
    run = house.waiting()
    assert Request.objects.get(subject=f"{run.pk}:1").policy_version == "1"


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ('{"tool": "pay", "cost": "100.00"}', "applies: dear"),
        ('{"tool": "pay", "cost": "99.99"}', "does not apply: dear"),
        ('{"tool": "pay"}', "a rule fails"),
        ('{"tool": "pay", "cost": "500"}', "fails: limit"),
        ("{", "This is no JSON"),
        ('["pay"]', "A step is an object"),
        ('{"tool": "pay", "cost": {}}', "“cost” is an amount"),
    ],
)
def test_a_step_can_be_tried(house: House, manager: Client, step: str, said: str) -> None:
    url = keep(manager).partition("?")[0]
    page = read(manager.get(url, {"step": step}))
    assert said in page.part("test-box").text


def test_a_difference_shows_the_words_that_changed(house: House, manager: Client) -> None:
    release(manager, keep(manager))
    url = keep(manager, TEXT.replace("100.00", "150.00"))
    shown = read(manager.get(url)).part("difference")
    changed = [mark.text for mark in shown.all("b")]
    assert ['money(\\"150.00\\")",' in text or "150.00" in text for text in changed].count(True) == 1
    assert "100.00" in "".join(mark.text for mark in shown.all("del"))


HOSTILE_TEXTS = {
    "NUL": TEXT.replace("dear", "de\x00ar"),
    "escaped NUL": TEXT.replace("dear", "de\\u0000ar"),
    "half a pair": TEXT.replace("dear", "\\ud83d"),
    "1 MB": TEXT + " " * 1_000_000,
    "deep": "[" * 40_000,
    "twice": TEXT.replace('"checks"', '"rules"'),
    "NaN": TEXT.replace("2,", "NaN,", 1),
    "endless": TEXT.replace("2,", "1e999,", 1),
    "empty": "",
}


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=list(HOSTILE_TEXTS))
def test_a_hostile_document_is_refused_in_words_and_comes_back(
    house: House, manager: Client, text: str
) -> None:
    sent = {"text": text, "reason": "long enough words", "submission": str(uuid4())}
    answer = manager.post(f"{URL}new/", sent)
    assert answer.status_code == 422
    assert read(answer).part("errors").text.count("Line 1") <= 1
    assert answer.context["values"] == {"text": text, "reason": "long enough words"}
    assert not PolicyVersion.objects.exists()


@pytest.mark.parametrize(
    "step",
    [
        '{"tool": "pay\x00", "cost": "1"}',
        '{"tool": "pay", "cost": NaN}',
        '{"tool": "pay", "cost": "1e999999999"}',
        '{"tool": "pay", "arguments": {"a": 1e999}, "cost": "1"}',
        '{"tool": "pay", "arguments": {"a": "\\ud83d"}, "cost": "1"}',
        '{"tool": "\\ud83d", "cost": "1"}',
        '{"tool": "pay", "cost": "1", "arguments": ' + '{"a":' * 1000 + "1" + "}" * 1001,
        '{"tool": "pay", "cost": "1", "arguments": {"a": ' + "9" * 5000 + "}}",
        "[" * 7000,
        "x" * 8001,
    ],
)
def test_a_hostile_step_is_answered_in_words(house: House, manager: Client, step: str) -> None:
    url = keep(manager).partition("?")[0]
    answer = manager.get(url, {"step": step})
    page = read(answer).part("test-box").text
    assert answer.status_code == 200 and (
        "It asks:" in page or "This is no JSON" in page or "Use at most" in page
    )


@pytest.mark.parametrize("reason", ["", "short", "x" * 4001, "\x00" * 9])
def test_a_release_without_words_is_refused_and_keeps_them(
    house: House, manager: Client, reason: str
) -> None:
    url = keep(manager)
    sent = read(manager.get(url)).part("release").sends() | {"reason": reason}
    answer = manager.post(url, sent)
    assert answer.status_code == 422 and answer.context["values"] == {"reason": reason}
    for broken in ({"submission": "\x00"}, {"submission": ""}, {"seen": "\x00" * 10}):
        said = manager.post(url, {**sent, "reason": "as decided on Monday", **broken})
        assert said.status_code in (409, 422)
    assert not PolicyRelease.objects.exists()
