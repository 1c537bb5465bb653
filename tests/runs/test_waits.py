"""Timers and answers: nothing that comes too early, late or twice is lost, and a wait holds nothing."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from runs import actions, recovery
from runs.access import NotPermitted
from runs.ledger import load
from runs.machine.safety import Action, next_safe_action
from runs.machine.state import State
from runs.machine.transitions import Decision, Refused
from runs.models import Run, Wait
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays

PAY = {"tool": "pay", "order": "7"}


def test_a_timer_ends_at_its_time_and_not_before(house: House, world: World, clock: Clock) -> None:
    run = house.scripted([{"timer": 60}, PAY])
    state = load(run.pk)
    assert state.state is State.WAITING
    assert next_safe_action(state).action is Action.WAIT
    row = Wait.objects.get(run=run)
    assert (row.kind, row.until) == ("timer", state.waits["rest"].until)

    clock.move(timedelta(seconds=55))
    assert advance(run).state is State.WAITING
    assert world.calls == []

    clock.move(timedelta(seconds=10))
    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:7") == 1


def test_a_timer_holds_no_worker_and_the_sweep_finds_it(house: House, clock: Clock) -> None:
    run = house.scripted([{"timer": 60}, PAY])
    row = Run.objects.get(pk=run.pk)
    assert row.lease_until is None and row.wake_at is not None

    recovery.announce("w")
    assert recovery.sweep() == 0
    clock.move(timedelta(seconds=61))
    recovery.announce("w")
    assert recovery.sweep() == 1


def test_all_checks_are_made_again_after_a_wait(house: House, clock: Clock) -> None:
    run = house.scripted([PAY, {"timer": 60}, {"tool": "tell", "order": "7"}])
    before = load(run.pk).revalidation
    clock.move(timedelta(seconds=61))
    after = advance(run)
    assert after.state is State.SUCCEEDED
    assert before and after.revalidation and after.revalidation.seq > before.seq


def test_an_answer_ends_the_wait(house: House, world: World) -> None:
    run = house.scripted([{"signal": "go"}, PAY])
    assert load(run.pk).state is State.WAITING
    assert Run.objects.get(pk=run.pk).wake_at is None

    state = house.answer(run, "go", '{"by":"post"}')
    assert state.state is State.WAITING and Run.objects.get(pk=run.pk).wake_at is not None

    state = advance(run)
    assert state.state is State.SUCCEEDED
    assert [(x.name, x.payload, x.taken_by) for x in state.signals] == [("go", '{"by":"post"}', "hear:go")]


def test_an_answer_that_comes_before_the_wait_is_not_lost(house: House, clock: Clock) -> None:
    run = house.scripted([{"timer": 3600}, {"signal": "go"}, PAY])
    house.answer(run, "go")
    assert load(run.pk).waits["rest"].ended_seq is None

    clock.move(timedelta(hours=1))
    assert advance(run).state is State.SUCCEEDED


def test_one_answer_ends_one_wait(house: House) -> None:
    run = house.scripted([{"signal": "go", "name": "first"}, {"signal": "go", "name": "second"}, PAY])
    house.answer(run, "go")
    assert advance(run).wait is not None
    assert load(run.pk).waits["second"].ended_seq is None

    house.answer(run, "go")
    assert advance(run).state is State.SUCCEEDED


def test_another_answer_ends_nothing(house: House) -> None:
    run = house.scripted([{"signal": "go"}, PAY])
    house.answer(run, "stop")
    assert advance(run).state is State.WAITING
    assert Run.objects.get(pk=run.pk).wake_at is None


def test_the_same_form_twice_is_one_answer(house: House) -> None:
    run = house.scripted([{"signal": "go"}, PAY])
    form = uuid4()
    for _ in range(2):
        actions.signal_run(person=house.operator, run_id=run.pk, name="go", payload="1", submission=form)
    assert len(load(run.pk).signals) == 1


def test_an_answer_that_does_not_come_needs_a_person_who_may_wait_on(house: House, clock: Clock) -> None:
    run = house.scripted([{"signal": "go", "within": 60}, PAY])
    clock.move(timedelta(seconds=61))
    state = advance(run)
    assert [(r.code, r.subject) for r in state.reasons] == [("signal_missing", "go")]

    state = house.choose(run, Decision.RESUME)
    assert state.state is State.WAITING
    assert advance(run).state is State.WAITING
    house.answer(run, "go")
    assert advance(run).state is State.SUCCEEDED


def test_an_answer_while_a_person_is_asked_is_taken_when_the_run_goes_on(house: House, clock: Clock) -> None:
    run = house.scripted([{"signal": "go", "within": 60}, PAY])
    clock.move(timedelta(seconds=61))
    advance(run)
    house.answer(run, "go")
    house.choose(run, Decision.RESUME)
    assert advance(run).state is State.SUCCEEDED


def test_a_run_that_is_over_takes_no_answer(house: House) -> None:
    run = house.scripted([PAY])
    with pytest.raises(Refused):
        house.answer(run, "go")
    assert assert_replays(run).signals == ()


def test_who_may_only_look_gives_no_answer(house: House) -> None:
    run = house.scripted([{"signal": "go"}, PAY])
    with pytest.raises(NotPermitted):
        actions.signal_run(person=house.viewer, run_id=run.pk, name="go", payload="1", submission=uuid4())
    assert load(run.pk).signals == ()


@pytest.mark.parametrize("name", ["", "Go", "go now", "a" * 101, "gö"])
def test_a_name_that_no_signal_can_have_is_refused(house: House, name: str) -> None:
    run = house.scripted([{"signal": "go"}, PAY])
    with pytest.raises(ValueError, match="name of a signal"):
        house.answer(run, name)


def test_a_wait_ends_for_a_cancel(house: House, world: World) -> None:
    run = house.scripted([{"signal": "go"}, PAY])
    house.cancel(run)
    assert advance(run).state is State.CANCELLED
    assert world.calls == []


def test_a_successor_knows_the_answers_that_came_before(house: House, clock: Clock) -> None:
    run = house.scripted([{"signal": "one"}, {"signal": "two", "within": 60}, PAY])
    house.answer(run, "one")
    advance(run)
    clock.move(timedelta(seconds=61))
    advance(run)
    done = actions.restart_run(person=house.operator, run_id=run.pk, note="again", submission=uuid4())
    successor = Run.objects.get(pk=done.run)
    state = advance(successor)
    assert state.wait is not None and state.wait.step == "hear:two"
    house.answer(successor, "two")
    assert advance(successor).state is State.SUCCEEDED


def test_a_plan_with_more_to_come_asks_the_planner_again(house: House, world: World) -> None:
    run = house.scripted([{"signal": "go"}], [PAY], more=True)
    house.answer(run, "go", '"yes"')
    state = advance(run)
    assert state.state is State.SUCCEEDED
    assert [p.plan.more for p in state.plans] == [True, False]
    assert world.times("pay:7") == 1


def test_a_wait_that_an_earlier_plan_had_is_not_waited_for_again(house: House, world: World) -> None:
    world.answers = ["refused"]
    plan = [{"signal": "go"}, PAY]
    run = house.scripted(plan, [{"signal": "go"}, {"tool": "tell", "order": "7"}])
    house.answer(run, "go")
    assert [r.code for r in advance(run).reasons] == ["tool_failed"]
    house.choose(run, Decision.REPLAN)
    assert advance(run).state is State.SUCCEEDED


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({"timer": -1}, "below zero"),
        ({"timer": 1e10}, "above ten years"),
        ({"timer": 1, "name": " "}, "name of a step"),
        ({"signal": "Not this"}, "name of a signal"),
        ({"signal": "go", "within": 0}, "above zero"),
    ],
)
def test_a_wait_that_makes_no_sense_is_refused(house: House, step: dict[str, object], problem: str) -> None:
    state = load(house.scripted([step, PAY]).pk)
    assert [r.code for r in state.reasons] == ["planner_refused"]
    assert problem in state.reasons[0].evidence
