"""Planners and reading tools are foreign code: whatever they do, the run ends somewhere and nothing is sent by it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from runs.agents import Ask, Assume, Plan, Promise, Read, View
from runs.machine.state import RunState, State
from runs.models import Run
from runs.tools import Reading, Unreadable
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance
from tests.runs.scripted import LOOK, Script, pay, plan

UNCANONICAL = Read(tool="look_up", arguments={"n": float("nan")})
READING = Reading(value={"open": True}, resource="order:7", version="v1")


def settled(run: Run, clock: Clock, *, times: int = 8) -> RunState:
    """The state once the run was moved as often as it wanted, the clock going on between."""
    for _ in range(times):
        state = advance(run)
        clock.move(timedelta(seconds=20))
    return state


def codes(state: RunState) -> list[str]:
    return [reason.code for reason in state.reasons]


def _raises(view: View) -> None:
    raise RuntimeError("out of tokens \ud800\x00")


BAD: dict[str, Callable[[View], Any]] = {
    "raises": _raises,
    "nothing": lambda view: None,
    "text": lambda view: "I refunded it already.",
    "no such tool": lambda view: Read(tool="nowhere", arguments={}),
    "writing tool to read": lambda view: Read(tool="pay", arguments={"order": "7", "amount": "1"}),
    "bad arguments to read": lambda view: Read(tool="look_up", arguments={"order": 7}),
    "no steps": lambda view: Plan(steps=()),
    "equal operation ids": plan(pay("a"), pay("b")),
    "equal names": plan(pay("a", "1"), pay("a", "2")),
    "unknown writing tool": lambda view: Plan(steps=(pay().__class__(name="x", tool="rob", arguments={}),)),
    "arguments against the schema": plan(pay(amount=1)),  # type: ignore[arg-type]
    "an amount that is none": plan(pay(amount="a lot")),
    "a blank in the operation id": plan(pay(order="7 b")),
    "NUL in a name": plan(pay("x\x00")),
    "half a character": plan(pay(order="\ud800")),
    "a step without a name": plan(pay(" ")),
    "a very long name": plan(pay("x" * 5000)),
    "a very long operation id": plan(pay(order="x" * 5000)),
    "rests on what was not read": plan(pay(rests_on=(LOOK,))),
    "rests on what cannot be": plan(pay(rests_on=(UNCANONICAL,))),
    "assumes what cannot be": plan(assumptions=(Assume(text="x", rests_on=(UNCANONICAL,)),)),
    "a promise about no step": plan(promises=(Promise(text="x", after="pay:7", by="nobody"),)),
}  # fmt: skip


def test_a_planner_that_makes_no_sense_ends_with_a_person(
    house: House, script: Script, world: World, clock: Clock
) -> None:
    for name, proposal in BAD.items():
        script.proposals = [proposal]
        state = settled(house.start(), clock, times=5 if proposal is _raises else 1)
        assert (name, state.state, codes(state)) == (name, State.NEEDS_HUMAN, ["planner_refused"])
        assert (name, world.calls, len(state.plans)) == (name, [], 0)


def test_a_planner_that_only_reads_ends_with_a_person(house: House, script: Script, world: World) -> None:
    script.proposals = [lambda view: Read(tool="look_up", arguments={"order": str(len(script.views))})]

    state = advance(house.start())

    assert (state.state, codes(state)) == (State.NEEDS_HUMAN, ["planner_refused"])


def test_a_planner_that_failed_once_is_asked_again(
    house: House, script: Script, world: World, clock: Clock
) -> None:
    script.proposals = [_raises, plan()]

    state = settled(house.start(), clock, times=2)

    assert state.state is State.SUCCEEDED
    assert world.times("pay:7") == 1


def test_a_question_waits_for_a_person(house: House, script: Script, world: World) -> None:
    script.proposals = [lambda view: Ask(question="Which account\x00?")]

    state = advance(house.start())

    assert codes(state) == ["asked"]
    assert "Which account" in state.reasons[0].evidence


def _failing(error: Exception, script: Script) -> Callable[[], Reading]:
    """Fails once, works from then on."""

    def read() -> Reading:
        script.reading = lambda: READING
        raise error

    return read


@pytest.mark.parametrize("error", [Unreadable("503 \ud800"), ValueError("not JSON"), KeyError("order")])
def test_a_reading_that_failed_is_tried_again(
    house: House, script: Script, world: World, clock: Clock, error: Exception
) -> None:
    script.reading = _failing(error, script)
    script.proposals = [lambda view: LOOK, lambda view: LOOK, plan(pay(rests_on=(LOOK,)))]

    state = settled(house.start(), clock, times=2)

    assert state.state is State.SUCCEEDED
    assert world.times("pay:7") == 1


def test_a_reading_that_nothing_can_be_compared_with_is_no_reading(
    house: House, script: Script, world: World, clock: Clock
) -> None:
    script.proposals = [lambda view: LOOK]
    for value in (float("nan"), 2**60, "\ud800", {1: 2}):
        script.reading = partial(Reading, value=value, resource="order:7", version="v1")
        state = settled(house.start(), clock, times=5)
        assert (value, codes(state), state.observations) == (value, ["observation_stale"], {})


def test_the_name_of_a_resource_may_be_anything(house: House, script: Script, world: World) -> None:
    script.reading = lambda: Reading(value=1, resource="o\x00" * 500, version="\ud800" * 500)
    script.proposals = [lambda view: LOOK, plan(pay(rests_on=(LOOK,)))]

    state = advance(house.start())

    assert state.state is State.SUCCEEDED


def test_a_source_that_fails_at_revalidation_is_tried_again(
    house: House, script: Script, world: World, clock: Clock
) -> None:
    script.proposals = [lambda view: LOOK, plan(pay(rests_on=(LOOK,)))]
    script.needed = 1
    run = house.waiting()
    world.unreadable = "503"
    house.decide(run, house.approver)

    state = advance(run)
    assert (state.state, state.failures, world.calls) == (State.APPROVED, 1, [])
    world.unreadable = ""
    clock.move(timedelta(seconds=2))

    assert advance(run).state is State.SUCCEEDED
