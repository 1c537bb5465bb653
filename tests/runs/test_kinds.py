"""Every kind of tool after its answer was lost: asked about, sent again under its key, or left to a person."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from runs import engine
from runs.host import uptime
from runs.ledger import load
from runs.machine.safety import Action, next_safe_action
from runs.machine.state import EffectStatus, RunState, State
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays


class Killed(BaseException):
    """Stands for a SIGKILL in this process: nothing of ours catches it."""


def killed_at(world: World, run: Run, where: str) -> RunState:
    """The run as a worker leaves it that dies before or after the outside executed."""

    def kill(at: str) -> None:
        if at == where:
            world.hook = None
            raise Killed

    world.hook = kill
    with pytest.raises(Killed):
        engine.advance(run.pk)
    return load(run.pk)


def recovered(run: Run, clock: Clock, seconds: int = 30) -> RunState:
    """The next worker's turn, after the dead one's lease has ended."""
    clock.move(timedelta(seconds=seconds))
    return advance(run)


def recovered_until(run: Run, clock: Clock, wanted: State) -> RunState:
    """Recovered again and again: the asker's own clock, which no test can move, has to go on as well."""
    deadline = uptime() + timedelta(seconds=20)
    while (state := recovered(run, clock, seconds=1)).state is not wanted:
        assert uptime() < deadline, state
        time.sleep(0.1)
    return state


def test_a_lost_answer_of_a_tool_without_queries_is_sent_again_under_its_key(
    house: House, world: World, clock: Clock
) -> None:
    world.answers = ["lost"]
    run = house.start(tool="pay_by_key")
    assert next_safe_action(advance(run)).action is Action.RESEND

    state = recovered(run, clock, seconds=1)

    assert state.state is State.SUCCEEDED
    assert world.times("pay:1042") == 1
    assert world.calls[:2] == ["pay:1042", "pay:1042"]
    assert len(state.effects[1].sends) == 2
    assert world.queries == []


def test_a_lost_answer_of_a_blind_tool_needs_a_person_at_once(house: House, world: World) -> None:
    world.answers = ["lost"]

    state = advance(house.start(tool="pay_blind"))

    assert [r.code for r in state.reasons] == ["effect_unknown"]
    assert world.times("pay:1042") == 1
    assert world.queries == []


def test_a_blind_call_that_was_marked_is_never_sent_again(house: House, world: World, clock: Clock) -> None:
    run = house.start(tool="pay_blind")
    state = killed_at(world, run, "before")
    assert state.effects[1].dispatched_seq is not None

    state = recovered(run, clock)

    assert [r.code for r in state.reasons] == ["effect_unknown"]
    assert world.times("pay:1042") == 0


def test_a_blind_call_without_its_mark_is_sent(
    house: House, world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.start(tool="pay_blind")

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("runs.machine.decide.dispatched", die)
        with pytest.raises(Killed):
            engine.advance(run.pk)
    assert world.calls == []

    state = recovered(run, clock)

    assert state.state is State.SUCCEEDED
    assert world.times("pay:1042") == 1


def test_without_keys_a_call_that_did_not_happen_waits_while_its_sender_lives(
    house: House, world: World, clock: Clock
) -> None:
    run = house.start(tool="pay_once")
    killed_at(world, run, "before")  # this very process sent, and it lives

    state = recovered_until(run, clock, State.NEEDS_HUMAN)

    assert [r.code for r in state.reasons] == ["effect_unknown"]
    assert state.effects[1].status is EffectStatus.UNKNOWN
    assert world.times("pay:1042") == 0


def test_without_keys_a_call_that_happened_is_found(house: House, world: World, clock: Clock) -> None:
    run = house.start(tool="pay_once")
    killed_at(world, run, "after")

    state = recovered(run, clock)

    assert state.state is State.SUCCEEDED
    assert world.times("pay:1042") == 1
    assert_replays(run)
