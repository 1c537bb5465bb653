"""Stating what became of an effect on the reconcile page: who may, what is missing, and who settles it."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.http import HttpResponse
from django.test import Client

from accounts.rights import Right, grant_right
from approvals.models import Attempt
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import EffectStatus, State
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.pages.test_reconcile import ask
from tests.pages.test_run import stuck
from tests.people import House, advance, assert_replays

HAPPENED = {
    "stated": "happened",
    "reference": "slip 7",
    "how": "The bank read it to me on the phone.",
    "phrase": "50.00 1042",
}
NOT = {**HAPPENED, "stated": "not_happened", "reference": ""}


@pytest.fixture
def run(house: House, world: World) -> Run:
    """A blind payment of which nobody can be asked, and two people who may attest."""
    world.answers = ["lost"]
    run = house.start(tool="pay_blind")
    assert advance(run).state is State.NEEDS_HUMAN
    permit(house)
    return run


def permit(house: House) -> None:
    for person in (house.operator, house.second):
        grant_right(to=person, right=Right.ATTEST_EFFECTS, obj=house.agent, actor=None, now=database_now())


def address(run: Run, what: str = "reconcile") -> str:
    return f"/runs/{run.pk}/effects/1/{what}/"


def page_of(client: Client, run: Run) -> Node:
    return read(client.get(address(run)))


def form_as_shown(client: Client, run: Run) -> dict[str, str]:
    return form_of(page_of(client, run), testid="attest-form").sends()


def send(client: Client, run: Run, form: dict[str, str]) -> HttpResponse:
    answer = client.post(address(run, "attest"), form)
    assert_replays(run)
    return answer  # type: ignore[return-value]


def state(client: Client, run: Run, said: dict[str, str]) -> HttpResponse:
    """Fill the form in as shown and send it."""
    return send(client, run, {**form_as_shown(client, run), **said})


def test_nothing_is_chosen_and_what_it_takes_is_said(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)

    part = page_of(client, run).part("attest")
    next_ = read(client.get(f"/runs/{run.pk}/")).part("next-safe-action").text

    assert "Find out what happened to effect E-1 and state it: bank cannot be asked." in next_
    outcomes = page_of(client, run).part("outcomes").text
    assert "bank cannot be asked about this effect. Needed: the statement of a person, below." in outcomes
    assert not [x for x in part.all("input", type="radio") if "checked" in x.attrs]
    assert "E-1 cannot be undone. It stays unknown until a second person states the same" in part.text
    assert "People who can: Second." in part.part("second-person").text
    (off,) = part.all(data_outcome="not_happened")
    assert not off.all("input")
    assert "may be stated from" in off.text and "UTC" in off.text


def test_a_second_person_settles_it_and_the_run_goes_on(
    house: House, world: World, run: Run, sign_in: SignIn
) -> None:
    first = state(sign_in(house.operator), run, HAPPENED)
    assert first.status_code == 302
    assert load(run.pk).effects[1].status is EffectStatus.UNKNOWN

    part = page_of(sign_in(house.second), run).part("attest")
    assert "People who can" not in part.part("second-person").text
    said = part.part("statement").text
    assert "Operator" in said and "slip 7" in said and "on the phone" in said
    assert "Stated, not an answer of the other system." in said
    assert "Stated already by Operator, reference “slip 7”." in part.text
    second = state(sign_in(house.second), run, HAPPENED)

    assert second.status_code == 302
    assert "Your statement was recorded." in read(sign_in(house.second).get(second["Location"])).text
    assert load(run.pk).effects[1].status is EffectStatus.CONFIRMED
    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:1042") == 1


def test_what_people_stated_is_shown_as_that_and_never_as_a_receipt(
    house: House, run: Run, sign_in: SignIn
) -> None:
    for person in (house.operator, house.second):
        state(sign_in(person), run, HAPPENED)
    client = sign_in(house.viewer)

    page = read(client.get(f"/runs/{run.pk}/"))
    row = page.one(data_testid="effect", data_effect="E-1").text
    (line,) = [x for x in page.part("handoff").all("li") if x.attrs["data-key"] == "last_confirmed"]
    printed = client.get(f"/runs/{run.pk}/handoff/?format=text").content.decode()
    reconciled = page_of(client, run)

    assert "Stated by Operator and Second, not an answer of the other system." in row
    assert "Receipt none; stated" in row and "reference, as stated" in row
    for shown in (line.text, printed):
        assert "stated by Operator and Second, reference slip 7" in shown
        assert "receipt slip" not in shown
    assert "as stated by Operator and Second" in reconciled.part("decided").text
    assert len(reconciled.all(data_testid="statement")) == 2
    assert not reconciled.all(data_testid="attest-form")
    advance(run)


def test_that_it_did_not_happen_is_not_said_too_early(
    house: House, world: World, run: Run, sign_in: SignIn, clock: Clock
) -> None:
    client = sign_in(house.operator)

    early = state(client, run, NOT)

    assert early.status_code == 422
    assert "The call may still come through" in read(early).part("errors").text
    assert read(early).part("attest").one("textarea").text == NOT["how"]
    assert Attempt.objects.get().refusal == "condition:too_early"
    clock.move(timedelta(minutes=1))
    for person in (house.operator, house.second):
        assert state(sign_in(person), run, NOT).status_code == 302
    effect = load(run.pk).effects[1]
    assert effect.status is EffectStatus.NOT_EXECUTED
    assert "did not happen, as stated by Operator and Second" in page_of(client, run).part("decided").text
    assert advance(run).state is State.SUCCEEDED


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"stated": ""}, "Choose what you state."),
        ({"reference": " "}, "Enter the reference of an external proof that it happened."),
        ({"how": "phone"}, "Enter how this was established, in at least 10 characters."),
        ({"phrase": "50.00"}, "The phrase does not fit: type 50.00 1042"),
        ({"stated": "not_happened"}, "A reference is of something that happened"),
        ({"reference": "s" * 201}, "Use at most 200 characters; these are 201."),
        ({"how": "s" * 4001}, "Use at most 4000 characters"),
    ],
)
def test_what_is_missing_is_named_and_what_was_typed_stays(
    house: House, run: Run, sign_in: SignIn, said: dict[str, str], error: str
) -> None:
    answer = state(sign_in(house.operator), run, {**HAPPENED, **said})

    page = read(answer)
    assert answer.status_code == 422
    assert error in page.part("errors").text
    assert page.part("attest").one("textarea").text == {**HAPPENED, **said}["how"]
    assert not load(run.pk).effects[1].attestations
    assert Attempt.objects.get().action == "attest"


def test_one_person_cannot_be_both(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    state(client, run, HAPPENED)

    again = state(client, run, HAPPENED)

    assert again.status_code == 422
    assert "You have stated this already. Needed: a second person" in read(again).part("errors").text
    assert len(load(run.pk).effects[1].attestations) == 1
    assert "second person" in page_of(client, run).part("attest").text


def test_two_who_name_different_proof_settle_nothing(house: House, run: Run, sign_in: SignIn) -> None:
    state(sign_in(house.operator), run, HAPPENED)

    assert state(sign_in(house.second), run, {**HAPPENED, "reference": "slip 8"}).status_code == 302

    assert load(run.pk).effects[1].status is EffectStatus.UNKNOWN


def test_the_same_form_twice_states_once(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    form = {**form_as_shown(client, run), **HAPPENED}

    first, second = send(client, run, form), send(client, run, form)

    assert first["Location"] == second["Location"]
    assert len(load(run.pk).effects[1].attestations) == 1


def test_a_form_from_before_it_was_settled_is_a_conflict(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    state(client, run, HAPPENED)
    late = form_as_shown(client, run)
    state(sign_in(house.second), run, HAPPENED)

    answer = send(client, run, {**late, **HAPPENED})

    page = read(answer)
    assert answer.status_code == 409
    assert "was not recorded and nothing was sent" in page.part("conflict").text
    assert "as stated by Operator and Second" in page.part("conflict").text
    assert page.part("attest").one("textarea").text == HAPPENED["how"]
    assert Attempt.objects.get().refusal == "stale"


def test_an_answer_that_came_meanwhile_is_a_conflict(house: House, world: World, sign_in: SignIn) -> None:
    run, client = stuck(house, world), sign_in(house.operator)
    permit(house)
    form = form_as_shown(client, run)
    world.outage = ""
    ask(client, run)

    answer = send(client, run, {**form, **HAPPENED})

    page = read(answer)
    assert answer.status_code == 409
    assert "no answer yet" in page.part("conflict").text
    assert form_of(page, testid="attest-form").sends()["how"] == HAPPENED["how"]
    assert not [x for x in page.all("input", type="radio") if "checked" in x.attrs]
    (now,) = page.part("attest").all("a", href=address(run))
    assert client.get(now.attrs["href"]).status_code == 200
    assert not load(run.pk).effects[1].attestations


def test_another_send_is_another_subject(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    form = form_as_shown(client, run)

    answer = send(client, run, {**form, **HAPPENED, "send_seq": "1"})

    assert answer.status_code == 409
    assert "the send in event 1" in read(answer).part("conflict").text


def test_one_person_is_enough_where_it_can_be_undone(house: House, world: World, sign_in: SignIn) -> None:
    world.answers, world.outage = ["", "lost"], "the mail is closed"
    run = house.start()
    assert advance(run).state is State.UNKNOWN
    permit(house)
    client = sign_in(house.operator)
    url = f"/runs/{run.pk}/effects/2/"
    page = read(client.get(f"{url}reconcile/"))
    form = form_of(page, testid="attest-form").sends()
    assert "phrase" not in form and not page.all(data_testid="second-person")

    answer = client.post(f"{url}attest/", {**form, **HAPPENED, "phrase": ""})

    assert answer.status_code == 302
    assert_replays(run)
    shown = read(client.get(f"/runs/{run.pk}/"))
    assert "Stated by Operator, not an answer" in shown.one(data_testid="effect", data_effect="E-2").text
    assert "discharged by what people stated" in shown.text
    assert advance(run).state is State.SUCCEEDED


def test_who_may_not_sees_who_can_and_a_stranger_finds_nothing(
    house: House, run: Run, sign_in: SignIn
) -> None:
    watching, foreign = sign_in(house.approver), sign_in(house.stranger)
    form = {**HAPPENED, "submission": str(uuid4()), "intent_seq": "1", "send_seq": "1", "answer_seq": ""}

    part = page_of(watching, run).part("attest")
    who = read(watching.get(f"/runs/{run.pk}/")).part("who-may-act").text
    mine = read(sign_in(house.second).get(f"/runs/{run.pk}/")).part("who-may-act")
    refused = send(watching, run, form)

    assert not part.all("form")
    for shown in (part.text, who):
        assert "Approver does not have the right “Attest effects” here." in shown
        assert "Operator, Second" in shown
    (link,) = [a for a in mine.all("a") if a.text == "Attest E-1"]
    assert link.attrs["href"] == f"{address(run)}#state-it"
    assert refused.status_code == 403
    assert "Operator, Second" in read(refused).text
    assert Attempt.objects.get().refusal == "not_allowed"
    assert send(foreign, run, form).status_code == 404
    assert not load(run.pk).effects[1].attestations
