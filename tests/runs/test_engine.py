"""One run from start to end: what the engine does by itself, and where it stops."""

from __future__ import annotations

from approvals.models import Verdict
from runs.machine.state import EffectStatus, State
from tests.outside import World
from tests.people import House, advance


def test_it_pays_below_the_limit_without_a_person(house: House, world: World) -> None:
    state = advance(house.start(amount="50.00"))

    assert state.state is State.SUCCEEDED
    assert world.times("pay:1042") == 1
    assert [o.open for o in state.obligations] == [False]


def test_it_waits_for_approval_from_the_limit_up(house: House, world: World) -> None:
    state = advance(house.start(amount="100.00"))

    assert state.state is State.WAITING_APPROVAL
    assert world.calls == []


def test_it_pays_once_it_is_approved(house: House, world: World) -> None:
    state = advance(house.approved())

    assert state.state is State.SUCCEEDED
    assert world.times("pay:2000") == 1


def test_a_rejected_plan_needs_a_person(house: House, world: World) -> None:
    run = house.waiting()
    house.decide(run, house.approver, Verdict.REJECT, "the amount is wrong")

    state = advance(run)

    assert state.state is State.NEEDS_HUMAN
    assert [r.code for r in state.reasons] == ["plan_rejected"]
    assert world.calls == []


def test_a_lost_answer_is_settled_by_asking(house: House, world: World) -> None:
    world.answers = ["lost"]

    state = advance(house.start())

    assert state.state is State.SUCCEEDED
    assert world.times("pay:1042") == 1
    assert state.effects[1].receipt is not None
    assert state.effects[1].receipt.source == "query"


def test_a_refused_call_needs_a_person(house: House, world: World) -> None:
    world.answers = ["refused"]

    state = advance(house.start())

    assert state.state is State.NEEDS_HUMAN
    assert [r.code for r in state.reasons] == ["tool_failed"]
    assert state.effects[1].status is EffectStatus.NOT_EXECUTED
