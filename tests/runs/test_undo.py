"""Undoing: in reverse order, by effects with intents, keys, approvals and receipts of their own."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from accounts.rights import Right, grant_right
from approvals.models import Verdict
from runs import actions, recovery
from runs.actions import relatives
from runs.clock import database_now
from runs.ledger import append, load
from runs.machine import events as e
from runs.machine.safety import Action, next_safe_action
from runs.machine.state import Direction, EffectStatus, Finding, State
from runs.machine.transitions import Decision, Refused
from runs.models import Effect, Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays

WAIT = {"signal": "go"}


def give(order: str, **more: object) -> dict[str, object]:
    return {"tool": "give", "order": order, **more}


@pytest.fixture
def given(house: House) -> Run:
    """Three things are done, one of which nothing undoes; the run waits for an answer."""
    run = house.scripted([give("1"), give("2"), {"tool": "pay", "order": "3"}, WAIT])
    assert load(run.pk).state is State.WAITING
    return run


def statuses(run: Run) -> dict[str, str]:
    return {x.operation_id: x.status for x in Effect.objects.filter(run=run)}


def test_what_can_be_undone_is_undone_the_latest_first(house: House, world: World, given: Run) -> None:
    house.cancel(given, undo=True)
    state = advance(given)
    assert state.state is State.CANCELLED
    assert world.calls[-2:] == ["take_back:2", "take_back:1"]
    assert statuses(given) == {
        "give:1": "compensated", "give:2": "compensated", "pay:3": "confirmed",
        "take_back:1": "confirmed", "take_back:2": "confirmed",
    }  # fmt: skip
    undone = Effect.objects.filter(run=given, tool="take_back").order_by("number")
    assert [(x.undoes_run, x.undoes_effect) for x in undone] == [
        (given.pk, 2),
        (given.pk, 1),
    ]
    keys = [x.key for x in state.effects.values()]
    assert len(set(keys)) == len(keys)


def test_without_being_asked_nothing_is_undone(house: House, world: World, given: Run) -> None:
    house.cancel(given)
    assert advance(given).state is State.CANCELLED
    assert "take_back:1" not in world.calls
    assert set(statuses(given).values()) == {"confirmed"}


def test_where_nothing_can_be_undone_the_run_ends(house: House, world: World) -> None:
    run = house.scripted([{"tool": "pay", "order": "3"}, WAIT])
    house.cancel(run, undo=True)
    assert advance(run).state is State.CANCELLED
    assert world.calls == ["pay:3"]


def test_an_unknown_effect_is_settled_before_anything_is_undone(house: House, world: World) -> None:
    world.answers = ["", "lost"]
    world.outage = "down"
    run = house.scripted([give("1"), give("2"), WAIT])
    assert load(run.pk).state is State.UNKNOWN
    house.cancel(run, undo=True)
    assert advance(run).state is State.UNKNOWN
    assert world.calls == ["give:1", "give:2"]

    world.outage = ""
    Clock().move(timedelta(minutes=5))
    assert advance(run).state is State.CANCELLED
    assert world.calls[-2:] == ["take_back:2", "take_back:1"]


def test_an_undo_whose_answer_is_lost_is_asked_about_and_not_sent_twice(
    house: House, world: World, given: Run, clock: Clock
) -> None:
    world.answers = ["lost"]
    world.outage = "down"
    house.cancel(given, undo=True)
    state = advance(given)
    assert (state.state, state.before) == (State.UNKNOWN, State.COMPENSATING)

    world.outage = ""
    clock.move(timedelta(minutes=5))
    assert advance(given).state is State.CANCELLED
    assert [world.times(f"take_back:{n}") for n in (1, 2)] == [1, 1]


def test_a_plan_that_undoes_is_approved_like_any_other(house: House, world: World) -> None:
    run = house.scripted([give("1", amount="250.00"), WAIT])
    house.cancel(run, undo=True)
    state = advance(run)
    assert state.state is State.CANCELLED  # the policy asks for what is irreversible only

    run = house.scripted([{"tool": "give_dear", "order": "2", "amount": "250.00"}, WAIT])
    house.cancel(run, undo=True)
    state = advance(run)
    assert (state.state, state.direction) == (State.WAITING_APPROVAL, Direction.UNDO)
    assert state.plan is not None and state.plan.plan.undo
    assert "take_back_dear:2" not in world.calls

    house.decide(run, house.approver)
    assert advance(run).state is State.CANCELLED
    assert world.times("take_back_dear:2") == 1


def test_a_plan_that_undoes_can_be_rejected_and_the_run_ended_as_it_is(house: House, world: World) -> None:
    run = house.scripted([{"tool": "give_dear", "order": "2", "amount": "250.00"}, WAIT])
    house.cancel(run, undo=True)
    advance(run)
    house.decide(run, house.approver, Verdict.REJECT)
    state = load(run.pk)
    assert next_safe_action(state).decisions == (Decision.REPLAN, Decision.RESTART, Decision.END)

    actions.end_run(person=house.operator, run_id=run.pk, note="let it be", submission=uuid4())
    assert assert_replays(run).state is State.CANCELLED
    assert statuses(run) == {"give_dear:2": "confirmed"}


def test_after_a_rejection_another_plan_undoes_the_same(house: House, world: World) -> None:
    run = house.scripted([{"tool": "give_dear", "order": "2", "amount": "250.00"}, WAIT])
    house.cancel(run, undo=True)
    advance(run)
    house.decide(run, house.approver, Verdict.REJECT)
    house.choose(run, Decision.REPLAN)
    state = advance(run)
    assert (state.state, state.plan.version if state.plan else 0) == (State.WAITING_APPROVAL, 3)
    house.decide(run, house.approver)
    assert advance(run).state is State.CANCELLED
    assert statuses(run)["give_dear:2"] == "compensated"


def test_a_refused_undo_needs_a_person_who_may_try_again(house: House, world: World, given: Run) -> None:
    world.answers = ["", "refused"]
    house.cancel(given, undo=True)
    state = advance(given)
    assert [(r.code, r.subject) for r in state.reasons] == [("compensation_failed", "E-5")]
    assert next_safe_action(state).decisions == (Decision.RETRY, Decision.RESTART, Decision.END)

    house.choose(given, Decision.RETRY)
    assert advance(given).state is State.CANCELLED
    assert world.calls[-1] == "take_back:1#1"
    assert statuses(given)["give:1"] == "compensated"


def test_a_tool_that_cannot_say_how_it_is_undone_needs_a_person(
    house: House, world: World, given: Run
) -> None:
    world.unreadable = "no idea"
    house.cancel(given, undo=True)
    state = advance(given)
    assert [(r.code, r.evidence) for r in state.reasons] == [("compensation_failed", "RuntimeError: no idea")]
    world.unreadable = ""
    house.choose(given, Decision.RETRY)
    assert advance(given).state is State.CANCELLED
    assert statuses(given)["give:1"] == "compensated"


def test_what_was_undone_can_be_done_again_and_is_really_done(house: House, world: World, given: Run) -> None:
    world.answers = ["", "refused"]
    house.cancel(given, undo=True)
    advance(given)  # give:2 is undone, give:1 stands
    done = actions.restart_run(person=house.operator, run_id=given.pk, note="after all", submission=uuid4())

    successor = Run.objects.get(pk=done.run)
    state = advance(successor)
    assert state.state is State.WAITING
    assert [x.operation_id for x in state.effects.values()] == ["give:2#1"]
    assert world.times("give:2#1") == 1 and world.times("give:1") == 1 and world.times("pay:3") == 1
    house.answer(successor, "go")
    assert advance(successor).state is State.SUCCEEDED


def test_a_successor_undoes_what_its_predecessor_did(house: House, world: World) -> None:
    world.answers = ["", "refused"]
    run = house.scripted([give("1"), {"tool": "tell", "order": "1"}, WAIT])
    done = actions.restart_run(person=house.operator, run_id=run.pk, note="again", submission=uuid4())
    successor = Run.objects.get(pk=done.run)
    assert advance(successor).state is State.WAITING

    house.cancel(successor, undo=True)
    assert advance(successor).state is State.CANCELLED
    assert world.times("take_back:1") == 1
    assert statuses(run)["give:1"] == "compensated"
    known = assert_replays(run).effects[1]
    assert known.compensated_by and known.compensated_by.run == successor.pk


def test_a_run_that_was_not_told_is_told_by_the_sweep(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.answers = ["", "refused"]
    run = house.scripted([give("1"), {"tool": "tell", "order": "1"}])
    done = actions.restart_run(person=house.operator, run_id=run.pk, note="again", submission=uuid4())
    successor = Run.objects.get(pk=done.run)
    world.answers = ["refused"]
    advance(successor)
    with monkeypatch.context() as lost:
        lost.setattr(relatives, "_to_tell", lambda before, after: [])
        house.cancel(successor, undo=True)
        assert advance(successor).state is State.CANCELLED
    assert statuses(run)["give:1"] == "confirmed"

    recovery.sweep()
    assert assert_replays(run).effects[1].status is EffectStatus.COMPENSATED


def test_what_children_did_is_undone_with_the_rest(house: House, world: World) -> None:
    child_input = {"plans": [[give("1")]]}
    run = house.scripted([give("0"), {"children": {"a": child_input}}, give("2"), WAIT])
    child = Run.objects.get(parent=run)
    advance(child)
    advance(run)
    house.cancel(run, undo=True)
    assert advance(run).state is State.CANCELLED
    assert world.calls[-3:] == ["take_back:2", "take_back:1", "take_back:0"]
    assert statuses(child) == {"give:1": "compensated"}


def test_a_child_that_still_goes_on_undoes_its_own(house: House, world: World) -> None:
    child_input = {"plans": [[give("1"), WAIT]]}
    run = house.scripted([give("0"), {"children": {"a": child_input}}])
    child = Run.objects.get(parent=run)
    advance(child)
    house.cancel(run, undo=True)
    assert advance(child).state is State.CANCELLED
    assert advance(run).state is State.CANCELLED
    assert world.calls[-2:] == ["take_back:1", "take_back:0"]


def test_a_run_cannot_be_ended_as_it_is_unless_it_was_being_undone(house: House, given: Run) -> None:
    with pytest.raises(Refused):
        actions.end_run(person=house.operator, run_id=given.pk, note="", submission=uuid4())
    assert load(given.pk).state is State.WAITING


def test_a_deadline_that_passed_does_not_keep_it_from_undoing(
    house: House, world: World, clock: Clock
) -> None:
    run = house.scripted([give("1"), WAIT], deadline=database_now() + timedelta(hours=1))
    clock.move(timedelta(hours=20))  # less than what it acts on stands
    house.cancel(run, undo=True)
    assert advance(run).state is State.CANCELLED
    assert world.times("take_back:1") == 1


def test_the_rows_say_what_comes_next(house: House, world: World, given: Run) -> None:
    world.answers = ["silent"]
    world.outage = "down"
    house.cancel(given, undo=True)
    advance(given)
    assert next_safe_action(load(given.pk)).action is Action.ASK


@pytest.mark.parametrize("happened", [True, False])
def test_what_people_find_about_an_undoing_is_so_of_what_it_undid(
    house: House, world: World, clock: Clock, happened: bool
) -> None:
    """Recorded as refused and found done; recorded as done and found refused."""
    for right in (Right.ATTEST_EFFECTS, Right.RECONCILE_EFFECTS):
        grant_right(to=house.operator, right=right, obj=house.agent, actor=None, now=database_now())
    run = house.scripted([give("1"), WAIT])
    world.answers = ["refused"] if happened else []
    house.cancel(run, undo=True)
    before = advance(run)
    assert before.effects[1].status is (EffectStatus.CONFIRMED if happened else EffectStatus.COMPENSATED)
    came = e.EvidenceKept(
        effect=2, executed=happened, reference="slip" if happened else "", evidence=e.raw("{}"), source="call",
        contradicts=True, raises=True,
    )  # fmt: skip
    append(before, [came], actor=actions.person_actor(house.operator), now=database_now())
    clock.move(timedelta(minutes=5))
    actions.settle_contradiction(
        person=house.operator, run_id=run.pk, effect=2, evidence=before.seq + 1, reference="", how="I rang them",
        finding=Finding.HAPPENED if happened else Finding.NOT_HAPPENED, submission=uuid4(),
        signed_in_at=database_now(),
    )  # fmt: skip
    after = assert_replays(run).effects[1]
    assert after.status is (EffectStatus.COMPENSATED if happened else EffectStatus.CONFIRMED)
    assert bool(after.compensated_by) is happened
