"""Runs that a run starts: made once, waited for, told of every end, reached by a cancel, and never sending twice."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from accounts.rights import Right, withdraw_right
from approvals.models import Request
from runs import actions, agents, engine, recovery
from runs.actions import relatives
from runs.actions.children import CodeMissing
from runs.clock import database_now
from runs.ledger import load
from runs.machine.safety import Action, next_safe_action
from runs.machine.state import RequestStatus, State
from runs.machine.transitions import Decision
from runs.machine.waits import child_id
from runs.models import Child, Run
from runs.tools import Answer
from tests.outside import World
from tests.people import House, advance, assert_replays

TELL = {"tool": "tell", "order": "all"}
DEAR = {"tool": "pay", "order": "1", "amount": "250.00"}


def pays(order: str) -> dict[str, object]:
    """The input of a child that pays one order."""
    return {"plans": [[{"tool": "pay", "order": order}]]}


def delegates(*orders: str, **more: object) -> dict[str, object]:
    return {"children": {order: pays(order) for order in orders}, **more}


def children(run: Run) -> list[Run]:
    return [Run.objects.get(pk=child.run) for child in load(run.pk).children.values()]


def test_a_parent_waits_for_all_that_it_started(house: House, world: World) -> None:
    run = house.scripted([delegates("1", "2"), TELL])
    first, second = children(run)
    assert load(run.pk).state is State.WAITING
    assert next_safe_action(load(run.pk)).action is Action.WAIT
    assert {c.parent_id for c in (first, second)} == {run.pk}
    assert {c.lineage for c in (first, second)} == {run.lineage}

    assert advance(first).state is State.SUCCEEDED
    assert advance(run).state is State.WAITING
    assert advance(second).state is State.SUCCEEDED
    assert advance(run).state is State.SUCCEEDED
    assert [world.times(x) for x in ("pay:1", "pay:2", "tell:all")] == [1, 1, 1]
    assert Child.objects.filter(run=run, ended_seq=None).count() == 0


def test_its_id_comes_from_parent_and_step(house: House) -> None:
    run = house.scripted([delegates("1"), TELL])
    assert [c.pk for c in children(run)] == [child_id(run.pk, "delegate", "1", 0)]


def test_a_child_accepts_what_its_parent_accepted(house: House) -> None:
    run = house.scripted([delegates("1"), TELL])
    state = load(children(run)[0].pk)
    assert [c.term for c in state.constraints] == [c.term for c in load(run.pk).constraints]
    assert (state.identity.parent, state.identity.parent_step, state.identity.depth) == (
        run.pk,
        "delegate",
        1,
    )


def test_a_parent_that_was_not_told_is_told_by_the_sweep(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.scripted([delegates("1"), TELL])
    with monkeypatch.context() as lost:
        lost.setattr(relatives, "_to_tell", lambda before, after: [])
        assert advance(children(run)[0]).state is State.SUCCEEDED
    assert load(run.pk).open_children

    recovery.sweep()
    assert assert_replays(run).open_children == ()
    assert advance(run).state is State.SUCCEEDED


def test_a_child_that_ended_before_its_goal_needs_a_person(house: House, world: World) -> None:
    run = house.scripted([delegates("1"), TELL])
    child = children(run)[0]
    house.cancel(child)
    advance(child)
    state = advance(run)
    assert [(r.code, r.subject) for r in state.reasons] == [("child_stopped", child.pk)]

    house.choose(run, Decision.RETRY)
    state = advance(run)
    again = children(run)[-1]
    assert state.state is State.WAITING
    assert again.pk == child_id(run.pk, "delegate", "1", 1)
    advance(again)
    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:1") == 1


def test_a_restarted_child_is_waited_for_as_its_successor(house: House, world: World) -> None:
    run = house.scripted([delegates("1"), TELL])
    world.answers = ["refused"]
    child = children(run)[0]
    assert [r.code for r in advance(child).reasons] == ["tool_failed"]
    done = actions.restart_run(person=house.operator, run_id=child.pk, note="again", submission=uuid4())
    assert load(run.pk).open_children[0].run == done.run
    assert advance(run).state is State.WAITING

    assert advance(Run.objects.get(pk=done.run)).state is State.SUCCEEDED
    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:1") == 1


def test_a_cancel_reaches_the_children(house: House, world: World) -> None:
    run = house.scripted([delegates("1", "2"), TELL])
    house.cancel(run)
    assert [load(c.pk).cancel_requested for c in children(run)] == [True, True]
    assert advance(run).state is State.WAITING  # nothing ends while a child goes on
    for child in children(run):
        assert advance(child).state is State.CANCELLED
    assert advance(run).state is State.CANCELLED
    assert world.calls == []


def test_a_cancel_that_reaches_a_child_ends_what_was_asked_of_its_approvers(house: House) -> None:
    run = house.scripted([{"children": {"1": {"plans": [[DEAR]]}}}, TELL])
    child = children(run)[0]
    assert advance(child).state is State.WAITING_APPROVAL
    house.cancel(run)
    assert assert_replays(child).state is State.CANCELLING
    assert Request.objects.get(subject__startswith=child.pk).state == RequestStatus.VOIDED.value


def test_a_cancel_that_did_not_reach_them_does_so_by_the_sweep(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.scripted([delegates("1"), TELL])
    with monkeypatch.context() as lost:
        lost.setattr(relatives, "_to_tell", lambda before, after: [])
        house.cancel(run)
    child = children(run)[0]
    assert not load(child.pk).cancel_requested

    recovery.sweep()
    assert advance(child).state is State.CANCELLED
    assert advance(run).state is State.CANCELLED


def test_a_cancel_goes_on_down(house: House) -> None:
    middle = {"plans": [[delegates("1"), TELL]]}
    run = house.scripted([{"children": {"middle": middle}}, TELL])
    child = children(run)[0]
    advance(child)
    grandchild = children(child)[0]
    house.cancel(run)
    assert load(grandchild.pk).cancel_requested
    for each in (grandchild, child, run):
        assert advance(each).state is State.CANCELLED


def test_while_a_child_goes_on_its_parent_is_neither_restarted_nor_planned_anew(house: House) -> None:
    run = house.scripted([delegates("1"), TELL])
    actions.stop_unserved(run_id=run.pk, version="1")
    assert load(run.pk).state is State.WAITING  # it waits for no worker, so none is missed
    _claimed_in_vain(run)
    state = assert_replays(run)
    assert next_safe_action(state).decisions == (Decision.RESUME, Decision.CANCEL)
    assert house.choose(run, Decision.RESUME).state is State.WAITING
    advance(children(run)[0])
    assert advance(run).state is State.SUCCEEDED


def _claimed_in_vain(run: Run) -> None:
    """Five claims without an event."""
    Run.objects.filter(pk=run.pk).update(claims=recovery.CLAIMS_WITHOUT_EVENT, wake_at=database_now())
    assert recovery.claim(run.pk) is None


def test_a_restarted_parents_new_child_repeats_nothing_of_the_old_one(house: House, world: World) -> None:
    run = house.scripted([delegates("1", "2"), TELL])
    first, second = children(run)
    advance(first)
    house.cancel(second)
    advance(second)
    assert [r.code for r in advance(run).reasons] == ["child_stopped"]
    done = actions.restart_run(person=house.operator, run_id=run.pk, note="again", submission=uuid4())

    successor = Run.objects.get(pk=done.run)
    advance(successor)
    for child in children(successor):
        assert advance(child).state is State.SUCCEEDED
    assert advance(successor).state is State.SUCCEEDED
    assert [world.times(x) for x in ("pay:1", "pay:2", "tell:all")] == [1, 1, 1]


def test_two_children_with_one_operation_do_it_once(house: House, world: World) -> None:
    run = house.scripted([{"children": {"a": pays("1"), "b": pays("1")}}, TELL])
    for child in children(run):
        assert advance(child).state is State.SUCCEEDED
    assert world.times("pay:1") == 1
    assert advance(run).state is State.SUCCEEDED


def test_what_children_spend_comes_out_of_the_parents_budget(house: House) -> None:
    run = house.scripted([delegates("1", budget="30.00"), TELL], budget=Decimal("45.00"))
    assert load(run.pk).left(()) == Decimal("15.00")
    advance(children(run)[0])  # spends 10.00
    assert load(run.pk).left(()) == Decimal("35.00")
    assert advance(run).state is State.SUCCEEDED


def test_children_that_cost_more_than_is_left_are_not_started(house: House) -> None:
    run = house.scripted([delegates("1", "2", budget="30.00"), TELL], budget=Decimal("45.00"))
    assert [r.code for r in load(run.pk).reasons] == ["budget_exhausted"]
    assert not Run.objects.filter(parent=run).exists()


def test_a_budget_cannot_be_escaped_by_a_child(house: House) -> None:
    state = load(house.scripted([delegates("1"), TELL], budget=Decimal("45.00")).pk)
    assert "each run that it starts needs one" in state.reasons[0].evidence


def test_runs_do_not_start_runs_without_end(house: House) -> None:
    deep: dict[str, object] = pays("1")
    for _ in range(9):
        deep = {"plans": [[{"children": {"on": deep}}]]}
    run = house.scripted(deep["plans"][0])  # type: ignore[index]
    depth = 0
    while started := children(run):
        run, depth = started[0], depth + 1
        advance(run)
    assert depth == 8
    assert "8 deep" in load(run.pk).reasons[0].evidence


def test_whoever_may_not_start_runs_starts_none_through_another(house: House) -> None:
    withdraw_right(to=house.operator, right=Right.START_RUNS, obj=house.agent, actor=None, now=database_now())
    run = house.scripted([delegates("1"), TELL])
    assert "may not start runs of payer" in load(run.pk).reasons[0].evidence


def test_a_child_of_no_known_agent_is_refused(house: House, world: World) -> None:
    from runs.agents import Children, ChildRun
    from runs.waiting import step

    problems: list[str] = []
    run = house.scripted([{"signal": "go"}, TELL])
    proposed = Children(name="x", runs=(ChildRun(name="a", agent="nobody", goal="g", input={}),))
    assert step(load(run.pk), proposed, problems) is None
    assert problems == ["x: a: there is no agent nobody "]


def test_what_a_child_spent_before_it_was_restarted_counts(house: House, world: World) -> None:
    both = {"plans": [[{"tool": "pay", "order": "1"}, {"tool": "tell", "order": "1"}]]}
    run = house.scripted([{"children": {"x": both}, "budget": "30.00"}, TELL], budget=Decimal("45.00"))
    child = children(run)[0]
    world.answers = ["", "refused"]
    advance(child)
    done = actions.restart_run(person=house.operator, run_id=child.pk, note="again", submission=uuid4())
    assert advance(Run.objects.get(pk=done.run)).state is State.SUCCEEDED
    assert load(run.pk).left(()) == Decimal("25.00")


def test_a_child_is_not_started_again_beyond_the_budget(house: House, world: World) -> None:
    both = {"plans": [[{"tool": "pay", "order": "1", "amount": "30.00"}, {"signal": "go"}]]}
    run = house.scripted([{"children": {"x": both}, "budget": "30.00"}, TELL], budget=Decimal("45.00"))
    child = children(run)[0]
    advance(child)
    house.cancel(child)
    advance(child)
    assert [r.code for r in advance(run).reasons] == ["child_stopped"]
    state = house.choose(run, Decision.RETRY)
    assert [r.code for r in state.reasons] == ["budget_exhausted"]
    assert len(state.children) == 1


def test_another_plan_with_other_work_under_the_same_name_has_it_done(house: House, world: World) -> None:
    run = house.scripted([delegates("x"), {"tool": "pay", "order": "9"}], [{"children": {"x": pays("2")}}])
    advance(children(run)[0])
    world.answers = ["refused"]
    assert [r.code for r in advance(run).reasons] == ["tool_failed"]
    house.choose(run, Decision.REPLAN)
    assert advance(run).state is State.WAITING
    assert advance(children(run)[-1]).state is State.SUCCEEDED
    assert advance(run).state is State.SUCCEEDED
    assert [world.times(x) for x in ("pay:x", "pay:2")] == [1, 1]


def test_a_child_that_another_plan_does_not_name_stops_nothing(house: House) -> None:
    run = house.scripted([delegates("1")], [delegates("2")])
    house.cancel(children(run)[0])
    advance(children(run)[0])
    advance(run)
    house.choose(run, Decision.REPLAN)
    advance(run)
    assert advance(children(run)[-1]).state is State.SUCCEEDED
    assert advance(run).state is State.SUCCEEDED


def test_another_plan_with_the_same_work_starts_none_that_ended_well(house: House) -> None:
    run = house.scripted([delegates("1", "2")])
    first, second = children(run)
    advance(second)
    for child in (first, None):
        again = child or children(run)[-1]
        house.cancel(again)
        advance(again)
        advance(run)
        if child:
            house.choose(run, Decision.RETRY)
    house.choose(run, Decision.REPLAN)
    assert [c.name for c in advance(run).children.values()] == ["1", "2", "1"]


def _stopped(house: House, run: Run) -> None:
    """The first child ends before its goal, and its parent is told."""
    child = children(run)[0]
    house.cancel(child)
    advance(child)
    advance(run)


def test_a_later_plan_adds_runs_to_a_step_and_the_budget_covers_them(house: House) -> None:
    first = {"children": {"x": pays("1")}, "budget": "60"}
    more = {"children": {"x": pays("1"), "y": pays("2")}, "budget": "95"}
    run = house.scripted([first], [more], more=True, budget=Decimal("100"))
    advance(children(run)[0])
    state = advance(run)
    assert [r.code for r in state.reasons] == ["budget_exhausted"]
    assert len(children(run)) == 1


def test_no_run_is_started_once_its_approval_does_not_stand(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.scripted([{"tool": "pay", "order": "4", "amount": "500.00"}, delegates("9")])
    house.decide(run, house.approver)
    called = engine._called

    def and_loses_the_right(*args: Any) -> Answer:
        house.approver.is_active = False
        house.approver.save()
        return called(*args)

    monkeypatch.setattr(engine, "_called", and_loses_the_right)
    state = advance(run)
    assert state.state is State.WAITING_APPROVAL
    assert state.children == {} and world.calls == ["pay:4"]


def test_a_run_whose_code_is_not_here_is_not_started(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.scripted([delegates("9"), TELL])
    _stopped(house, run)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(agents, "registered", dict)
        with pytest.raises(CodeMissing, match="payer, version 1, is not installed here"):
            house.choose(run, Decision.RETRY)
    assert len(children(run)) == 1


def test_a_worker_without_a_runs_code_leaves_it_to_a_person(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.scripted([{"tool": "pay", "order": "4", "amount": "500.00"}, delegates("9")])
    house.decide(run, house.approver)

    class Elsewhere(dict[Any, Any]):
        def __contains__(self, key: object) -> bool:
            return False

    with monkeypatch.context() as elsewhere:
        here = Elsewhere(agents.registered())
        elsewhere.setattr(agents, "registered", lambda: here)
        state = advance(run)
    assert [(r.code, r.subject) for r in state.reasons] == [("version_unavailable", "payer")]

    house.choose(run, Decision.RESUME)
    assert advance(run).state is State.WAITING
    assert world.times("pay:4") == 1
