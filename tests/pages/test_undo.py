"""Ending a run with what it did undone, as its pages tell it: the choice, the plan that undoes, what stays, the end."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.rights import Right, grant_right, withdraw_right
from approvals.models import Verdict
from runs import actions, agents
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import EffectStatus, State
from runs.models import Run
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.people import House, advance

GIVE, PAY, WAIT = {"tool": "give", "order": "7"}, {"tool": "pay", "order": "8"}, {"signal": "go"}


def page_of(client: Client, run: Run, path: str = "") -> Node:
    return read(client.get(f"/runs/{run.pk}/{path}"))


def stop(client: Client, run: Run, choice: str, reason: str = "ordered by mistake") -> Node:
    sent = form_of(page_of(client, run, "stop/")).sends()
    answer = client.post(f"/runs/{run.pk}/stop/", {**sent, "choice": choice, "reason": reason}, follow=True)
    assert answer.status_code == 200
    return read(answer)


@pytest.fixture
def careful(house: House, settings: Settings) -> None:
    """People approve what takes a payment back."""
    settings.HANDOFF_AGENTS = ["tests.pages.careful:CAREFUL"]
    agents.registered.cache_clear()


def test_the_stop_page_says_what_would_be_undone_and_what_stays(house: House, sign_in: SignIn) -> None:
    run = house.scripted([GIVE, {"tool": "give", "order": "9"}, PAY, {"tool": "tell", "order": "8"}, WAIT])

    page = page_of(sign_in(house.operator), run, "stop/")

    undone = [line.text for line in page.part("would-undo").all("li")]
    assert undone == [
        "E-2 (pay 10.00 EUR for order 9), by: take back 10.00 EUR for order 9.",
        "E-1 (pay 10.00 EUR for order 7), by: take back 10.00 EUR for order 7.",
    ]
    assert [line.text for line in page.part("not-undone").all("li")] == [
        "E-4 (tell the supplier about order 8): no tool of this agent undoes it; a person may do it outside.",
        "E-3 (pay 10.00 EUR for order 8): it cannot be undone.",
    ]
    assert "Not waited for any more: wait for the answer go." in page.part("impact").text
    assert "Not sent any more: wait" not in page.text
    radios = page.all("input", type="radio")
    assert [x.attrs["value"] for x in radios] == ["cancel", "undo"]
    assert not [x for x in radios if "checked" in x.attrs]


def test_nothing_is_undone_that_nobody_chose(house: House, sign_in: SignIn) -> None:
    run, client = house.scripted([GIVE, WAIT]), sign_in(house.operator)
    sent = form_of(page_of(client, run, "stop/")).sends()
    assert "choice" not in sent

    for choice in ({}, {"choice": "everything"}):
        answer = client.post(f"/runs/{run.pk}/stop/", {**sent, **choice, "reason": "ordered by mistake"})
        assert answer.status_code == 422
        assert "Choose what becomes of what was done." in read(answer).part("errors").text
    assert load(run.pk).state is State.WAITING

    page = stop(client, run, "cancel")
    assert "nothing done is undone" in page.part("result").text
    advance(run)
    page = page_of(client, run)
    assert "E-1 (pay 10.00 EUR for order 7)" in page.part("left-standing").text


def test_where_nothing_can_be_undone_it_is_not_offered(house: House, sign_in: SignIn) -> None:
    run = house.scripted([PAY, WAIT])
    page = page_of(sign_in(house.operator), run, "stop/")
    assert page.all("input", type="radio") == []
    assert form_of(page).sends()["choice"] == "cancel"


def test_a_run_is_undone_from_the_page_to_the_end(
    house: House, world: World, sign_in: SignIn, careful: None
) -> None:
    run, client = house.scripted([GIVE, PAY, WAIT]), sign_in(house.operator)

    page = stop(client, run, "undo")
    assert "Then a plan is made that undoes, and reviewed like any other." in page.part("result").text
    assert "Its end was asked for, and that what it did is undone." in page.one("main").text
    assert (
        "What it did and can be undone is undone first. A worker does that now."
        in page.part("end-asked").text
    )
    advance(run)

    page = page_of(client, run)
    action = page.part("next-safe-action").text
    assert "Review plan v2, which undoes what the run did: approve it or reject it." in action
    assert "the plan undoes 1 effect" in action and "ask for changes" not in action
    assert "The plan for that waits for approval." in page.part("end-asked").text
    planned = page.one(data_testid="effect", data_effect="–")
    assert "undoes E-1" in planned.text

    review = page_of(sign_in(house.approver), run, "plan/2/review/")
    listed = review.part("exec-list").text
    assert "Undoes E-1 (pay 10.00 EUR for order 7)" in listed
    assert "take back 10.00 EUR for order 7" in listed
    assert [x.attrs["value"] for x in review.all("input", type="radio")] == ["approve", "reject"]
    house.decide(run, house.approver)
    state = advance(run)

    assert state.state is State.CANCELLED and world.times("take_back:7") == 1
    page = page_of(client, run)
    assert "undone by E-3" in page.one(data_testid="effect", data_effect="E-1").text
    row = page.one(data_testid="effect", data_effect="E-3")
    assert row.part("undoes").one("a").attrs["href"] == "#effect-E-1"
    left = [line.text for line in page.part("left-standing").all("li")]
    assert left == ["E-2 (pay 10.00 EUR for order 8)"]
    assert "1 undone" in page.part("effects").text
    printed = sign_in(house.viewer).get(f"/runs/{run.pk}/handoff/?format=text").content.decode()
    assert "Still stands: E-2 (pay 10.00 EUR for order 8)" in printed


def test_no_changes_can_be_asked_to_a_plan_that_undoes(house: House, sign_in: SignIn, careful: None) -> None:
    run = house.scripted([GIVE, WAIT])
    house.cancel(run, undo=True)
    advance(run)
    client = sign_in(house.approver)
    sent = form_of(page_of(client, run, "plan/2/review/"), testid="decision-form").sends()

    answer = client.post(
        f"/runs/{run.pk}/plan/2/review/", {**sent, "decision": "ask", "reason": "take back less of it"}
    )
    with pytest.raises(actions.NothingToChange, match="No changes can be asked for"):
        house.decide(run, house.approver, Verdict.ASK, "take back less of it")

    assert answer.status_code == 422
    assert "No changes can be asked for: approve it or reject it." in read(answer).part("errors").text
    assert load(run.pk).state is State.WAITING_APPROVAL


def refused_undo(house: House, world: World) -> Run:
    """A run that could not undo what it did."""
    run = house.scripted([GIVE, PAY, WAIT])
    house.cancel(run, undo=True)
    world.answers = ["refused"]
    assert advance(run).state is State.NEEDS_HUMAN
    return run


def test_a_run_that_could_not_be_undone_is_ended_as_it_is(
    house: House, world: World, sign_in: SignIn
) -> None:
    run, client = refused_undo(house, world), sign_in(house.operator)
    page = page_of(client, run, "decide/")
    choices = {x.attrs["value"]: x for x in page.all("input", type="radio")}
    assert "end" in choices and "retry" in choices and "cancel" not in choices
    assert [x.text for x in page.part("would-stand").all("li")] == [
        "E-2 (pay 10.00 EUR for order 8)",
        "E-1 (pay 10.00 EUR for order 7)",
    ]
    assert "tried again in a new round" in page.text and "The refused step is done again" not in page.text
    sent = {**form_of(page).sends(), "choice": "end", "note": "the bank does not do it"}

    first = client.post(f"/runs/{run.pk}/decide/", sent)
    second = client.post(f"/runs/{run.pk}/decide/", sent)

    assert first["Location"] == second["Location"]
    page = read(client.get(first["Location"]))
    assert "The run was ended as it is." in page.part("result").text
    assert load(run.pk).state is State.CANCELLED
    assert len(page.part("left-standing").all("li")) == 2


def test_a_failed_undo_is_tried_again(house: House, world: World, sign_in: SignIn) -> None:
    run, client = refused_undo(house, world), sign_in(house.operator)
    sent = {**form_of(page_of(client, run, "decide/")).sends(), "choice": "retry", "note": "open again"}
    client.post(f"/runs/{run.pk}/decide/", sent)
    state = advance(run)
    assert (state.state, state.effects[1].status) == (State.CANCELLED, EffectStatus.COMPENSATED)


def test_ending_takes_the_right_to_end(house: House, world: World, sign_in: SignIn) -> None:
    run = refused_undo(house, world)
    withdraw_right(
        to=house.operator, right=Right.CANCEL_RUNS, obj=house.agent, actor=None, now=database_now()
    )
    client = sign_in(house.operator)
    page = page_of(client, run, "decide/")
    assert "end" not in [x.attrs["value"] for x in page.all("input", type="radio")]
    assert "End the run as it is Not available:" in page.text
    sent = {**form_of(page).sends(), "choice": "end", "submission": str(uuid4())}
    assert client.post(f"/runs/{run.pk}/decide/", sent).status_code == 403
    assert load(run.pk).state is State.NEEDS_HUMAN


def test_the_review_of_a_plan_with_waits_counts_no_wait(house: House, sign_in: SignIn) -> None:
    child = {"plans": [[{"tool": "give", "order": "1"}]]}
    steps: list[dict[str, object]] = [
        {"timer": 90}, {"signal": "go", "within": 60}, {"children": {"part": child}, "budget": "30"},
        {"tool": "pay", "order": "8", "amount": "250.00"},
    ]  # fmt: skip
    run = house.scripted(steps)
    assert load(run.pk).state is State.WAITING_APPROVAL

    page = page_of(sign_in(house.approver), run, "plan/1/review/")
    plan = page_of(sign_in(house.approver), run, "plan/1/")

    said = page.part("exec-summary").text
    assert "exactly this 1 change. 1 of them cannot be undone. It also starts 1 run, which has" in said
    waits = page.all("article", data_testid="waiting-step")
    assert [x.one("h3").text for x in waits] == [
        "1 of 4 · Waits for 1 min 30 s. sends nothing",
        "2 of 4 · Waits for the answer “go” for at most 1 min; then a person decides. sends nothing",
        "3 of 4 · Starts 1 run and waits until it has ended. sends nothing",
    ]
    assert "idempotency key" not in " ".join(x.text for x in waits)
    assert "Pay part" in waits[2].text and "budget 30" in waits[2].text and "payer 1 part" in waits[2].text
    assert page.one("form", data_testid="decision-form").text.count("Approve this 1 change") == 1
    assert len(plan.all("article", data_testid="waiting-step")) == 3
    assert "waits, sends nothing" in plan.part("plan").text
    action = page_of(sign_in(house.viewer), run).part("next-safe-action").text
    assert "The plan makes 1 change outside; 1 of it cannot be undone. It starts 1 run." in action


def test_the_inbox_and_the_list_say_what_moves_a_run(
    house: House, world: World, sign_in: SignIn, careful: None
) -> None:
    waiting = house.scripted([WAIT])
    undoing = house.scripted([GIVE, WAIT])
    house.cancel(undoing, undo=True)
    client = sign_in(house.approver)
    assert "first undoes what is to be undone" in row_of(client, undoing, "?view=any")
    advance(undoing)

    assert "Waits for the answer “go”." in row_of(client, waiting, "?view=any")
    assert "approval of plan v2, which undoes what the run did, expires at" in row_of(
        client, undoing, "?view=all"
    )
    urgent = read(client.get("/inbox/?view=all"))
    assert waiting.pk not in urgent.text
    listed = read(client.get("/inbox/?view=any&state=waiting"))
    assert waiting.pk in listed.text and undoing.pk not in listed.text
    assert [x for x in listed.all("option") if "selected" in x.attrs and x.attrs.get("value") == "waiting"]


def row_of(client: Client, run: Run, query: str) -> str:
    rows = read(client.get(f"/inbox/{query}")).all(data_testid="row")
    (found,) = [row.text for row in rows if run.pk in row.text]
    return found


def test_the_audit_and_the_replay_tell_it(house: House, world: World, sign_in: SignIn) -> None:
    run = refused_undo(house, world)
    client = sign_in(house.operator)
    actions.end_run(person=house.operator, run_id=run.pk, note="leave it", submission=uuid4())
    answered = house.scripted([WAIT])
    house.answer(answered, "go", '"yes"')

    ended = read(client.get("/audit/?action=end")).one("main").text
    given = read(client.get("/audit/?action=signal")).one("main").text
    asked = read(client.get("/audit/?action=cancel")).one("main").text

    assert "ended the run before its goal" in ended and run.pk in ended
    assert "gave the answer “go”" in given and answered.pk in given
    assert "and for what it did to be undone" in asked
    state = load(run.pk)
    replayed = read(client.get(f"/runs/{run.pk}/replay/?seq={state.seq}"))
    assert "yes, and that what it did is undone" in replayed.part("state-after").text
    waited = load(answered.pk)
    began = waited.waits["hear:go"].began_seq
    changed = read(client.get(f"/runs/{answered.pk}/replay/?seq={began}")).part("changed").text
    assert "Step hear:go waits for the answer “go”" in changed


def test_a_refused_attempt_on_a_child_is_found_by_its_id(house: House, sign_in: SignIn) -> None:
    parent = house.scripted([{"children": {"part": {"plans": [[WAIT]]}}}])
    (child,) = load(parent.pk).children.values()
    sent = {"name": "go", "payload": "1", "submission": str(uuid4())}
    assert sign_in(house.viewer).post(f"/runs/{child.run}/answer/", sent).status_code == 403

    grant_right(to=house.operator, right=Right.SEE_AUDIT, obj=house.tenant, actor=None, now=database_now())
    page = read(sign_in(house.operator).get(f"/audit/?run={child.run}&result=refused"))

    assert "tried: Give a run an answer" in page.one("main").text
    assert f"/runs/{child.run}/" in [a.attrs.get("href") for a in page.one("main").all("a")]
    client = sign_in(house.operator)
    for query in (f"q={parent.pk}", f"parent={parent.pk}", f"q={child.run.lower()}"):
        assert child.run in read(client.get(f"/inbox/?view=any&{query}")).text
    only = read(client.get(f"/inbox/?view=any&parent={parent.pk}"))
    assert len(only.all(data_testid="row")) == 1 and parent.pk in only.part("of-parent").text
