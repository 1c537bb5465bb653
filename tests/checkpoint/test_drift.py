"""The plan that continues is the plan that was approved, byte for byte, whatever the planner would answer now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from runs.agents import Decline, Plan, Proposal, View
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine.canonical import digest
from runs.machine.state import RequestStatus, State
from runs.machine.transitions import Decision
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance
from tests.runs.conftest import house, script, world
from tests.runs.scripted import LOOK, SCRIPT, Script, pay

__all__ = ["house", "script", "world"]
LATER = timedelta(seconds=3)


def _approved_steps(view: View) -> Proposal:
    if view.observed("look_up", {"order": "7"}) is None:
        return LOOK
    return Plan(steps=(pay(rests_on=(LOOK,)), pay("pay:8", order="8", rests_on=(LOOK,))), claim="as before")


def _other_model(view: View) -> Proposal:
    """Another version of the model: another amount, another order of the steps, other names."""
    return Plan(
        steps=(pay("first:8", order="8", amount="51.00"), pay("second:7", amount="49.00")), claim="better"
    )


def _truncated(view: View) -> Proposal:
    """It was given only a part of what happened, and begins again with what is done."""
    return Plan(steps=(pay("again:7"), pay("again:9", order="9")), claim="it seems that nothing was paid")


def _other_seed(view: View) -> Proposal:
    """The same model, drawn again: it gives up."""
    return Decline(reason="on second thought")


DRIFTS: dict[str, Callable[[View], Proposal]] = {
    "another model": _other_model, "a truncated context": _truncated, "another seed": _other_seed,
}  # fmt: skip


@pytest.fixture
def waiting(house: House, script: Script) -> Run:
    """A plan that waits for the approval of one person."""
    script.proposals, script.needed = [_approved_steps], 1
    return house.waiting("7", "50.00")


def _texts(run: Run) -> list[str]:
    """The documents of the plan versions, as the log holds them."""
    return [e.text_of(r.event.document) for r in log(run.pk) if isinstance(r.event, e.PlanProposed)]


@pytest.mark.parametrize("drift", DRIFTS)
def test_what_was_approved_is_what_is_carried_out(
    house: House, world: World, script: Script, waiting: Run, clock: Clock, drift: str
) -> None:
    (approved,) = _texts(waiting)
    asked = len(SCRIPT.views)
    script.proposals = [DRIFTS[drift]]
    house.decide(waiting, house.approver)
    world.answers = ["lost"]  # a crash in between: the run comes back from an unknown outcome
    advance(waiting)
    clock.move(LATER)
    state = advance(waiting)

    assert state.state is State.SUCCEEDED
    assert len(SCRIPT.views) == asked, "the planner was asked while a plan that was approved stood"
    assert _texts(waiting) == [approved] and digest("plan", approved) == state.requests[0].digest
    planned = [(x.operation_id, x.arguments) for x in state.plans[0].plan.steps]
    assert [(x.operation_id, x.arguments) for x in state.effects.values()] == planned
    assert {i for i, _, _ in world.executed} == {"pay:7", "pay:8"} and len(world.executed) == 2


def test_another_answer_changes_nothing_until_it_is_proposed_reviewed_and_approved(
    house: House, world: World, script: Script, waiting: Run, clock: Clock
) -> None:
    house.decide(waiting, house.approver)
    world.versions["7"] = "v2"  # what the plan rests on changed: it is planned anew, now with another model
    script.proposals = [lambda view: Plan(steps=(pay("other:8", order="8", amount="51.00"),), claim="better")]
    state = advance(waiting)

    assert state.state is State.WAITING_APPROVAL and world.executed == []
    assert [x.status for x in state.requests] == [RequestStatus.VOIDED, RequestStatus.PENDING]
    first, second = _texts(waiting)
    assert state.requests[1].digest == digest("plan", second) != digest("plan", first)
    house.decide(waiting, house.approver)
    state = advance(waiting)
    assert state.state is State.SUCCEEDED
    assert [(i, a["amount"]) for i, _, a in world.executed] == [("pay:8", "51.00")]


def test_a_person_who_lets_the_run_go_on_asks_no_planner(
    house: House, world: World, script: Script, waiting: Run, clock: Clock
) -> None:
    """Stopped in the middle, half of it done: resumed, it goes on with the rest of the very same plan."""
    house.decide(waiting, house.approver)
    world.answers = ["", "refused"]
    state = advance(waiting)
    assert state.state is State.NEEDS_HUMAN
    (approved,), asked = _texts(waiting), len(SCRIPT.views)
    script.proposals = [_other_model]
    house.choose(waiting, Decision.RETRY)
    for _ in range(3):
        state = advance(waiting)
        if state.state is State.WAITING_APPROVAL:
            house.decide(waiting, house.approver)

    assert load(waiting.pk).state is State.SUCCEEDED
    assert _texts(waiting) == [approved] and len(SCRIPT.views) == asked
    assert [x for x, _, _ in world.executed] == ["pay:7", "pay:8#1"]
