"""Undoing, where people find that an effect, or what undid it, is not as recorded: nothing is done on a guess."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from accounts.rights import Right, grant_right
from runs import actions, recovery
from runs.actions import relatives
from runs.clock import database_now
from runs.ledger import append, load
from runs.machine import decide
from runs.machine import events as e
from runs.machine.state import EffectStatus, Finding, RunState, State
from runs.machine.transitions import Decision
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.invariants import assert_nothing_waits_for_nothing
from tests.runs.test_undo import WAIT, give, statuses


@pytest.fixture(autouse=True)
def _may_attest(house: House) -> None:
    grant_right(
        to=house.operator, right=Right.ATTEST_EFFECTS, obj=house.agent, actor=None, now=database_now()
    )


@pytest.fixture
def given(house: House) -> Run:
    """Two things are done, and the run waits for an answer."""
    return house.scripted([give("1"), give("2"), WAIT])


def late(run: Run, effect: int, *, executed: bool) -> RunState:
    """An older holder hears the contrary of what is recorded."""
    state = load(run.pk)
    if executed:
        events = decide.executed(
            state, effect, reference="ref-late", evidence="null", problem=None, versions={}, late=True
        )
    else:
        events = decide.refused_call(state, effect, detail="no", evidence="null", late=True)
    append(state, events, actor=e.Actor(e.ActorKind.WORKER, "old", "old"), now=database_now())
    return assert_replays(run)


def find(house: House, run: Run, effect: int, finding: Finding) -> RunState:
    """The operator finds which is true."""
    came = load(run.pk).effects[effect].contradicted
    assert came is not None
    actions.settle_contradiction(
        person=house.operator, run_id=run.pk, effect=effect, evidence=came.seq, finding=finding, reference="",
        how="They read it to me.", submission=uuid4(),
        signed_in_at=database_now(),
    )  # fmt: skip
    return assert_replays(run)


def test_what_was_not_undone_after_all_stands_and_is_not_done_again(
    house: House, world: World, clock: Clock, given: Run
) -> None:
    world.answers = ["", "refused"]
    house.cancel(given, undo=True)
    assert advance(given).effects[2].status is EffectStatus.COMPENSATED
    late(given, 3, executed=False)
    clock.move(timedelta(hours=1))

    state = find(house, given, 3, Finding.NOT_HAPPENED)

    assert (state.effects[2].status, state.effects[2].compensated_by) == (EffectStatus.CONFIRMED, None)
    done = actions.restart_run(person=house.operator, run_id=given.pk, note="after all", submission=uuid4())
    assert advance(Run.objects.get(pk=done.run)).state is State.WAITING
    assert world.calls == ["give:1", "give:2", "take_back:2", "take_back:1"]


def test_what_was_not_undone_after_all_is_undone_in_a_new_round(
    house: House, world: World, clock: Clock, given: Run
) -> None:
    world.answers = ["", "refused"]
    house.cancel(given, undo=True)
    advance(given)
    late(given, 3, executed=False)
    clock.move(timedelta(hours=1))
    find(house, given, 3, Finding.NOT_HAPPENED)

    house.choose(given, Decision.RETRY)

    assert advance(given).state is State.CANCELLED
    assert world.calls[-2:] == ["take_back:2#1", "take_back:1#1"]
    assert (statuses(given)["give:1"], statuses(given)["give:2"]) == ("compensated", "compensated")


def test_what_was_undone_after_all_stands_no_more(
    house: House, world: World, clock: Clock, given: Run
) -> None:
    world.answers = ["refused"]
    house.cancel(given, undo=True)
    advance(given)
    late(given, 3, executed=True)
    clock.move(timedelta(hours=1))

    state = find(house, given, 3, Finding.HAPPENED)

    assert state.effects[2].status is EffectStatus.COMPENSATED
    house.choose(given, Decision.RETRY)
    assert advance(given).state is State.CANCELLED
    assert world.calls[2:] == ["take_back:2", "take_back:1"]


def test_what_did_not_happen_is_not_undone(house: House, world: World, clock: Clock, given: Run) -> None:
    world.answers = ["refused"]
    house.cancel(given, undo=True)
    advance(given)
    late(given, 1, executed=False)
    clock.move(timedelta(hours=1))
    find(house, given, 1, Finding.NOT_HAPPENED)

    house.choose(given, Decision.RETRY)
    state = advance(given)

    assert state.state is State.CANCELLED
    assert world.calls[2:] == ["take_back:2", "take_back:2#1"]
    assert [(c.what, c.subject) for p in state.plans for c in p.voided] == [("stands_no_more", "E-1")]
    assert_nothing_waits_for_nothing()


def test_what_is_disputed_is_settled_before_it_is_undone(
    house: House, world: World, clock: Clock, given: Run
) -> None:
    late(given, 1, executed=False)
    house.cancel(given, undo=True)
    state = advance(given)
    assert [(r.code, r.subject) for r in state.reasons] == [("effect_conflict", "E-1")]
    assert world.calls == ["give:1", "give:2"]

    find(house, given, 1, Finding.AS_RECORDED)

    assert advance(given).state is State.CANCELLED
    assert world.calls[2:] == ["take_back:2", "take_back:1"]


def test_what_was_found_to_stand_while_undoing_is_undone_too(
    house: House, world: World, clock: Clock
) -> None:
    world.answers = ["", "refused", "refused"]
    run = house.scripted([give("1"), give("2"), WAIT])
    house.cancel(run, undo=True)
    advance(run)
    late(run, 2, executed=True)
    find(house, run, 2, Finding.HAPPENED)

    house.choose(run, Decision.RETRY)
    state = advance(run)

    assert state.state is State.CANCELLED
    assert [(c.what, c.subject) for p in state.plans for c in p.voided] == [("stands_too", "E-2")]
    assert statuses(run)["give:2"] == "compensated"
    assert_nothing_waits_for_nothing()


def test_a_relative_is_told_of_the_effect_that_did_undo(house: House, world: World) -> None:
    world.answers = ["", "refused"]
    run = house.scripted([give("1"), {"tool": "tell", "order": "1"}, WAIT])
    done = actions.restart_run(person=house.operator, run_id=run.pk, note="again", submission=uuid4())
    successor = Run.objects.get(pk=done.run)
    advance(successor)
    world.answers = ["refused"]
    house.cancel(successor, undo=True)
    advance(successor)
    house.choose(successor, Decision.RETRY)
    state = advance(successor)

    by = assert_replays(run).effects[1].compensated_by

    assert by and by.run == successor.pk
    assert state.effects[by.effect].operation_id == "take_back:1#1"


def test_trying_to_undo_again_starts_no_run(house: House, world: World) -> None:
    run = house.scripted([give("1"), {"children": {"a": {"plans": [[give("9")]]}}}])
    child = Run.objects.get(parent=run)
    house.cancel(child)
    advance(child)
    advance(run)
    world.unreadable = "no idea"
    house.cancel(run, undo=True)
    advance(run)
    world.unreadable = ""

    house.choose(run, Decision.RETRY)

    assert advance(run).state is State.CANCELLED
    assert Run.objects.filter(parent=run).count() == 1


@pytest.mark.parametrize("told", [True, False], ids=["told", "by the sweep"])
def test_a_relative_is_told_that_its_effect_stands_after_all(
    house: House, world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    world.answers = ["", "refused"]
    run = house.scripted([give("1"), {"tool": "tell", "order": "1"}, WAIT])
    done = actions.restart_run(person=house.operator, run_id=run.pk, note="again", submission=uuid4())
    successor = Run.objects.get(pk=done.run)
    advance(successor)
    house.cancel(successor, undo=True)
    undo = next(x.number for x in advance(successor).effects.values() if x.tool == "take_back")
    assert load(run.pk).effects[1].status is EffectStatus.COMPENSATED
    late(successor, undo, executed=False)
    clock.move(timedelta(hours=1))

    with monkeypatch.context() as lost:
        if not told:
            lost.setattr(relatives, "_to_tell", lambda before, after: [])
        find(house, successor, undo, Finding.NOT_HAPPENED)
    recovery.sweep()

    known = assert_replays(run).effects[1]
    assert (known.status, known.compensated_by) == (EffectStatus.CONFIRMED, None)
    assert [x.effect for x in load(successor.pk).inherited if x.run == run.pk] == [1]
    recovery.sweep()
    assert load(run.pk).effects[1].status is EffectStatus.CONFIRMED
