"""Cancelling, deciding how a stopped run goes on, and asking for approval again."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client

from approvals.models import Attempt, Verdict
from runs import actions
from runs.ledger import load
from runs.machine.state import State
from runs.machine.transitions import Decision
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.pages.test_run import stuck
from tests.people import House, advance, assert_replays


def form(client: Client, run: Run, page: str) -> dict[str, str]:
    return form_of(read(client.get(f"/runs/{run.pk}/{page}/"))).sends()


def refused_call(house: House, world: World) -> Run:
    world.answers = ["refused"]
    run = house.start()
    assert advance(run).state is State.NEEDS_HUMAN
    return run


def test_a_cancel_says_what_it_does_and_ends_the_run(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    impact = read(client.get(f"/runs/{run.pk}/stop/")).part("impact").text
    assert "Not sent any more: pay 250.00 EUR for order 2000." in impact

    answer = client.post(
        f"/runs/{run.pk}/stop/", {**form(client, run, "stop"), "reason": "not needed any more"}, follow=True
    )

    assert "The end of the run was asked for." in read(answer).part("result").text
    assert advance(run).state is State.CANCELLED


def test_a_cancel_waits_for_what_is_unknown(house: House, world: World, sign_in: SignIn) -> None:
    run, client = stuck(house, world), sign_in(house.operator)

    page = read(client.get(f"/runs/{run.pk}/stop/"))
    client.post(f"/runs/{run.pk}/stop/", {**form_of(page).sends(), "reason": "not needed any more"})

    assert "The run does not end before E-1 is settled." in page.text
    state = assert_replays(run)
    assert (state.state, state.cancel_requested) == (State.UNKNOWN, True)
    assert "was asked for already" in read(client.get(f"/runs/{run.pk}/stop/")).text


def test_a_cancel_needs_a_reason(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)

    answer = client.post(f"/runs/{run.pk}/stop/", {**form(client, run, "stop"), "reason": "no"})

    assert answer.status_code == 422
    assert read(answer).one("textarea").text == "no"
    assert load(run.pk).state is State.WAITING_APPROVAL


def test_a_refused_step_is_tried_again_in_a_new_round(house: House, world: World, sign_in: SignIn) -> None:
    run, client = refused_call(house, world), sign_in(house.operator)
    sent = {**form(client, run, "decide"), "choice": "retry", "note": "the bank is open again"}

    answer = client.post(f"/runs/{run.pk}/decide/", sent, follow=True)

    assert "the refused step is tried again" in read(answer).part("result").text
    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:1042#1") == 1


def test_nothing_is_chosen_and_nothing_else_is_taken(house: House, world: World, sign_in: SignIn) -> None:
    run, client = refused_call(house, world), sign_in(house.operator)
    page = read(client.get(f"/runs/{run.pk}/decide/"))
    assert not [radio for radio in page.all("input", type="radio") if "checked" in radio.attrs]

    for choice in ("", "cancel", "nonsense"):
        sent = {**form_of(page).sends(), "choice": choice, "submission": str(uuid4())}
        assert client.post(f"/runs/{run.pk}/decide/", sent).status_code == 422
    sent = {**form_of(page).sends(), "choice": "resume"}
    assert client.post(f"/runs/{run.pk}/decide/", sent).status_code == 409
    assert load(run.pk).state is State.NEEDS_HUMAN


def test_a_decision_on_what_has_moved_is_a_conflict(house: House, world: World, sign_in: SignIn) -> None:
    run, client = refused_call(house, world), sign_in(house.operator)
    sent = {**form(client, run, "decide"), "choice": "retry", "note": "typed for a long time"}
    actions.decide_run(
        person=house.operator, run_id=run.pk, decision=Decision.REPLAN, note="another", submission=uuid4()
    )

    answer = client.post(f"/runs/{run.pk}/decide/", sent)

    page = read(answer)
    assert answer.status_code == 409
    assert "Operator decided that the agent makes another plan. “another”" in page.part("conflict").text
    assert Attempt.objects.get().reason == "typed for a long time"


def test_a_rejected_plan_is_made_anew(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    house.decide(run, house.approver, Verdict.REJECT, "amount above the cap")
    sent = {**form(client, run, "decide"), "choice": "replan", "note": "keep below the cap"}

    client.post(f"/runs/{run.pk}/decide/", sent)
    state = advance(run)

    assert (state.state, len(state.plans)) == (State.WAITING_APPROVAL, 2)


def test_an_expired_request_is_asked_again(house: House, sign_in: SignIn, clock: Clock) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    clock.move(timedelta(minutes=1))
    advance(run)
    page = read(client.get(f"/runs/{run.pk}/"))
    assert "Ask for approval of plan v1 again" in page.part("next-safe-action").text
    sent = form(client, run, "renew")

    first = client.post(f"/runs/{run.pk}/renew/", sent)
    second = client.post(f"/runs/{run.pk}/renew/", sent)

    assert first["Location"] == second["Location"]
    state = assert_replays(run)
    assert [request.status.value for request in state.requests] == ["expired", "pending"]
    assert client.post(f"/runs/{run.pk}/renew/", {**sent, "submission": str(uuid4())}).status_code == 409


@pytest.mark.parametrize("page", ["stop", "decide", "renew"])
def test_one_who_may_only_look_and_a_stranger(house: House, world: World, sign_in: SignIn, page: str) -> None:
    run = refused_call(house, world)
    before = load(run.pk).seq
    sent = {"choice": "retry", "reason": "long enough a reason", "submission": str(uuid4())}

    assert sign_in(house.viewer).get(f"/runs/{run.pk}/{page}/").status_code == 200
    assert sign_in(house.viewer).post(f"/runs/{run.pk}/{page}/", sent).status_code == 403
    assert sign_in(house.stranger).get(f"/runs/{run.pk}/{page}/").status_code == 404
    assert sign_in(house.stranger).post(f"/runs/{run.pk}/{page}/", sent).status_code == 404
    assert load(run.pk).seq == before
    assert Attempt.objects.get().person == house.viewer


def test_a_restart_closes_the_run_and_leads_on(house: House, world: World, sign_in: SignIn) -> None:
    run, client = refused_call(house, world), sign_in(house.operator)
    sent = {**form(client, run, "decide"), "choice": "restart", "note": "begin again"}

    first = client.post(f"/runs/{run.pk}/decide/", sent)
    second = client.post(f"/runs/{run.pk}/decide/", sent)

    assert first["Location"] == second["Location"]
    successor = load(run.pk).successor
    page = read(client.get(first["Location"]))
    assert "closed and restarted as a new one" in page.part("result").text
    assert page.part("next-safe-action").one("a").attrs["href"] == f"/runs/{successor}/"
    assert Run.objects.count() == 2
    assert advance(Run.objects.get(pk=successor)).state is State.SUCCEEDED
    assert world.times("pay:1042") == 1
