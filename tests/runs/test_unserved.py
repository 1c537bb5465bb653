"""Runs whose agent's version no worker has: handed to a person, or ended where they were cancelled."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs import engine, recovery
from runs.ledger import load
from runs.machine.state import EffectStatus, RunState, State
from runs.machine.transitions import Decision
from runs.models import Run, Sweep
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance
from tests.runs.test_evidence import kinds
from tests.runs.test_ledger import sql, tampering
from tests.runs.test_planning import codes


def swept(run: Run, clock: Clock, *, times: int = 3) -> RunState:
    """The state after sweeps that find nobody who serves the agent, the grace long over."""
    for _ in range(times):
        clock.move(timedelta(seconds=70))
        recovery.sweep()
    return load(run.pk)


def test_a_run_that_nobody_serves_is_a_persons_and_goes_on_when_somebody_does(
    house: House, world: World, clock: Clock
) -> None:
    run = house.start()
    assert codes(swept(run, clock)) == ["version_unavailable"]
    assert kinds(run).count("HumanNeeded") == 1

    house.choose(run, Decision.RESUME)

    assert advance(run).state is State.SUCCEEDED


def test_an_effect_that_was_left_in_flight_can_be_reconciled(
    house: House, world: World, clock: Clock
) -> None:
    def hook(when: str) -> None:
        world.hook = None
        raise SystemExit

    world.hook = hook
    run = house.start()
    with pytest.raises(SystemExit):
        engine.advance(run.pk)
    assert load(run.pk).effects[1].status is EffectStatus.IN_FLIGHT

    state = swept(run, clock)

    assert codes(state) == ["version_unavailable"]
    assert state.effects[1].status is EffectStatus.UNKNOWN


def test_a_cancel_needs_no_code(house: House, world: World, clock: Clock) -> None:
    run = house.start()
    house.cancel(run)
    assert swept(run, clock).state is State.CANCELLED


def test_a_cancel_of_a_stopped_run_ends_once(house: House, world: World, clock: Clock) -> None:
    run = house.start()
    swept(run, clock)
    house.cancel(run)

    state = swept(run, clock)

    assert state.state is State.CANCELLED
    assert kinds(run).count("HumanNeeded") == 1


def test_a_damaged_log_does_not_keep_the_sweep_from_the_others(
    house: House, world: World, clock: Clock
) -> None:
    damaged, other = house.start("1"), house.start("2")
    with tampering():
        sql("UPDATE runs_event SET type = 'Foretold' WHERE run_id = %s", damaged.pk)

    assert codes(swept(other, clock, times=1)) == ["version_unavailable"]
    assert Sweep.objects.count() == 1

    with tampering():
        sql("UPDATE runs_event SET type = 'RunStarted' WHERE run_id = %s", damaged.pk)
