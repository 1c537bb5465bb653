"""A restored database may have lost events: what it would send for the first time is asked about first."""

from __future__ import annotations

from uuid import uuid4

from django.core.management import call_command

from runs import actions, recovery
from runs.ledger import log
from runs.machine import events as e
from runs.machine.state import EffectStatus, RunState, State
from runs.machine.transitions import Decision
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance
from tests.runs.test_kinds import recovered_until


def restored(house: House, tool: str = "pay") -> Run:
    """A run that a worker held before its database was put back from a copy."""
    run = house.start(tool=tool)
    held = recovery.claim(run.pk)
    assert held is not None
    with held:
        pass
    call_command("declare_restore", "last night's copy")
    return run


def types(run: Run) -> list[type[e.Event]]:
    return [type(recorded.event) for recorded in log(run.pk)]


def test_what_was_sent_by_lost_events_is_found_and_not_sent_again(house: House, world: World) -> None:
    run = restored(house)
    world.executed.append(("pay:1042", "another key", {"order": "1042", "amount": "50.00"}))

    state = advance(run)

    assert [r.code for r in state.reasons] == ["effect_conflict"]  # under a key that nobody here made
    assert world.calls == []


def test_what_was_not_sent_is_sent_once_the_outside_said_so(house: House, world: World, clock: Clock) -> None:
    run = restored(house)

    state = recovered_until(run, clock, State.SUCCEEDED)

    assert world.times("pay:1042") == 1
    assert world.queries[0] == "pay:1042"
    assert types(run).index(e.HistoryChanged) < types(run).index(e.EffectIntended)
    assert state.effects[1].status is EffectStatus.CONFIRMED


def test_what_cannot_be_asked_about_needs_a_person(house: House, world: World) -> None:
    state = advance(restored(house, tool="pay_by_key"))

    assert [r.code for r in state.reasons] == ["history_lost"]
    assert world.calls == []


def test_a_person_may_answer_for_it(house: House, world: World) -> None:
    run = restored(house, tool="pay_by_key")
    advance(run)

    actions.decide_run(
        person=house.operator,
        run_id=run.pk,
        decision=Decision.RESUME,
        note="the bank has none",
        submission=uuid4(),
    )
    state: RunState = advance(run)

    assert state.state is State.SUCCEEDED
    assert world.times("pay:1042") == 1


def test_the_same_history_changes_nothing(house: House, world: World) -> None:
    run = house.approved()
    advance(run)

    assert e.HistoryChanged not in types(run)
