"""Arguments that come late: bound from what happened, inside the bounds that people saw, or not sent at all."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from runs import actions
from runs.agents import Bounds, FromSignal, Late, Signal, Step
from runs.late_values import bindings
from runs.machine import events as e
from runs.machine import late as parts
from runs.machine.canonical import canonical
from runs.machine.safety import next_safe_action
from runs.machine.state import PlanStep, RunState, State
from runs.machine.transitions import Decision
from runs.models import Run
from runs.planning_late import LateRefused, opened
from tests.outside import PAYER, World
from tests.people import House, advance
from tests.runs.scripted import SCRIPT, Script, plan

Spec = Mapping[str, object]
RANGE = {"least": "1.00", "most": "50.00"}
READ = {"from": "reading", "tool": "look_up", "arguments": {"order": "9"}, "path": "version", **RANGE}
RECEIPT = {"from": "receipt", "step": "give:6", "path": "evidence.amount", **RANGE}
GIVE: Spec = {"tool": "give", "order": "6", "amount": "12.50"}
TELL: Spec = {"tool": "tell", "order": "7", "late": RECEIPT}


def from_signal(name: str = "price", tool: str = "give", **more: object) -> list[Spec]:
    source = {"from": "signal", "step": f"hear:{name}", **RANGE, **more}
    return [{"signal": name}, {"tool": tool, "order": "7", "late": source}]


def late_step(state: RunState) -> PlanStep:
    assert state.plan is not None
    return next(x for x in state.plan.plan.steps if x.late)


def codes(state: RunState) -> list[str]:
    return [r.code for r in state.reasons]


def amounts(world: World) -> list[str]:
    return [a["amount"] for _, _, a in world.executed]


def test_the_answer_that_came_is_bound_into_the_intent(house: House, world: World) -> None:
    run = house.scripted(from_signal())
    house.answer(run, "price", '"20.00"')
    state = advance(run)
    assert state.state is State.SUCCEEDED
    effect = state.effects[1]
    assert effect.arguments == canonical({"order": "7", "amount": "20.00"})
    assert (effect.cost, effect.title) == ("20.00", "pay 20.00 EUR for order 7")
    assert [(x.path, e.text_of(x.value)) for x in effect.bound] == [("amount", '"20.00"')]
    assert amounts(world) == ["20.00"]
    step = late_step(state)
    assert step.title == "pay 1.00 … 50.00 EUR for order 7"
    assert step.arguments == canonical({"order": "7"})
    assert (step.cost, step.operation_id) == ("50.00", effect.operation_id)


def test_outside_its_bounds_nothing_is_sent_and_the_plan_ends_with_the_cause(
    house: House, world: World
) -> None:
    run = house.scripted(from_signal(), [{"tool": "give", "order": "7", "amount": "9.00"}])
    house.answer(run, "price", '"50.01"')
    state = advance(run)
    assert state.state is State.SUCCEEDED
    assert amounts(world) == ["9.00"]
    cause = e.Cause(what="late", subject="give:7 amount", was="1.00 … 50.00", now='"50.01"')
    assert state.plans[0].voided == (cause,)


def test_out_of_bounds_again_and_again_a_person_is_asked(house: House, world: World) -> None:
    """The third plan in a row ends with a person; the plan that they ask for counts anew."""
    run = house.scripted(*(from_signal(f"p{n}") for n in range(5)))
    for n in range(3):
        house.answer(run, f"p{n}", '"99.00"')
        state = advance(run)
    assert codes(state) == ["out_of_bounds"]
    assert Decision.REPLAN in next_safe_action(state).decisions
    house.choose(run, Decision.REPLAN)
    advance(run)
    house.answer(run, "p3", '"99.00"')
    assert codes(advance(run)) == []
    assert world.executed == []


def test_a_receipt_gives_the_value_whether_a_call_or_a_query_brought_it(house: House, world: World) -> None:
    world.answers = ["", "", "lost"]
    first = house.scripted([GIVE, TELL])
    second = house.scripted([{**GIVE, "order": "8", "name": "give:6"}, {**TELL, "order": "9"}])
    assert [advance(run).state for run in (first, second)] == [State.SUCCEEDED, State.SUCCEEDED]
    assert world.queries == ["give:8"]
    assert amounts(world) == ["12.50"] * 4


def test_after_a_restart_the_receipt_of_the_run_before_gives_the_value(house: House, world: World) -> None:
    """The successor's first step is answered from what stands, and the second is bound from that receipt."""
    world.answers = ["", "refused"]
    run = house.scripted([GIVE, TELL])
    assert codes(advance(run)) == ["tool_failed"]
    actions.restart_run(person=house.operator, run_id=run.pk, note="again", submission=uuid4())
    successor = Run.objects.get(predecessor=run)
    state = advance(successor)
    assert state.state is State.SUCCEEDED
    (effect,) = state.effects.values()
    assert effect.arguments == canonical({"order": "7", "amount": "12.50"})
    assert [x.source.split(":")[0] for x in effect.bound] == [run.pk]


def test_a_refused_send_is_made_again_in_a_new_round_with_what_is_bound_then(
    house: House, world: World
) -> None:
    world.answers = ["refused"]
    world.versions["9"] = "31.00"
    run = house.scripted([{"tool": "give", "order": "7", "late": READ}])
    assert codes(advance(run)) == ["tool_failed"]
    world.versions["9"] = "32.00"
    house.choose(run, Decision.RETRY)
    state = advance(run)
    assert state.state is State.SUCCEEDED
    assert [x.operation_id for x in state.effects.values()] == ["give:7", "give:7#1"]
    assert amounts(world) == ["32.00"]


def test_what_was_sent_keeps_its_arguments_whatever_its_source_says_by_now(
    house: House, world: World
) -> None:
    """What became of the call is unknown: if it is sent again, it is the same intent with the value bound for it."""
    world.answers = ["silent"]
    world.versions["9"] = "31.00"
    state = advance(house.scripted([{"tool": "give", "order": "7", "late": READ}]))
    assert state.state is State.UNKNOWN
    ((key, seen),) = state.observations.items()
    later = replace(seen, value=seen.value.replace("31.00", "44.00"))
    found = bindings(replace(state, observations={key: later}), PAYER, late_step(state))
    assert found.step.arguments == state.effects[1].arguments == canonical({"order": "7", "amount": "31.00"})


def test_a_source_that_cannot_be_read_is_tried_again_and_nothing_is_sent(house: House, world: World) -> None:
    world.unreadable = "the shop is closed"
    state = advance(house.scripted([{"tool": "give", "order": "7", "late": READ}]))
    assert (state.state, state.failures, world.calls) == (State.EXECUTING, 1, [])


def test_what_a_child_run_spent_gives_the_value(house: House, world: World) -> None:
    children = {"a": {"plans": [[{"tool": "give", "order": "5", "amount": "8.00"}]]}}
    late = {"from": "child", "step": "delegate", "run": "a", "path": "spent", **RANGE}
    steps: list[Spec] = [{"children": children}, {"tool": "give", "order": "7", "late": late}]
    run = house.scripted(steps)
    advance(Run.objects.exclude(pk=run.pk).get())
    assert advance(run).state is State.SUCCEEDED
    assert amounts(world) == ["8.00", "8.00"]


def test_people_approve_the_dearest_value_and_the_budget_must_cover_it(house: House, world: World) -> None:
    """The policy asks from 100 on and up to 120 may come, so people are asked although 20 comes."""
    run = house.scripted(from_signal(tool="pay", most="120.00"))
    state = advance(run)
    assert state.state is State.WAITING_APPROVAL
    assert late_step(state).phrase == "120.00 7"
    house.decide(run, house.approver)
    house.answer(run, "price", '"20.00"')
    state = advance(run)
    assert (state.state, state.spent) == (State.SUCCEEDED, Decimal("20.00"))
    assert codes(advance(house.scripted(from_signal(), budget=Decimal("40.00")))) == ["budget_exhausted"]


def test_what_was_bound_late_can_be_undone(house: House, world: World) -> None:
    run = house.scripted([*from_signal(), {"signal": "never"}])
    house.answer(run, "price", '"20.00"')
    advance(run)
    house.cancel(run, undo=True)
    assert advance(run).state is State.CANCELLED
    assert [(i, a["amount"]) for i, _, a in world.executed] == [("give:7", "20.00"), ("take_back:7", "20.00")]


@pytest.mark.parametrize(
    ("bounds", "problem"),
    [
        (Bounds(), "a least and a most"),
        (Bounds(least=Decimal(5), most=Decimal(1)), "no bounds"),
        (Bounds(least=Decimal("NaN"), most=Decimal(1)), "no bounds"),
        (Bounds(type="text"), "characters"),
        (Bounds(type="text", longest=9, pattern="(", example="x"), "no pattern"),
        (Bounds(type="text", longest=9, pattern="[0-9]+", example="x"), "example"),
        (Bounds(one_of=("1.00", "much")), "choice"),
    ],
)
def test_bounds_that_bind_nothing_are_refused(bounds: Bounds, problem: str) -> None:
    with pytest.raises(LateRefused, match=problem):
        opened({"amount": Late(source=FromSignal(step="hear:price"), bounds=bounds)})


@pytest.mark.parametrize("came", ["0.99", "50.01", "NaN", 20, "1e1", None, "20.00 ", "٢٠", True, ["20.00"]])
def test_what_is_no_decimal_within_the_bounds_is_outside(came: Any) -> None:
    assert not parts.within(parts.Bounds(type="decimal", least="1.00", most="50.00"), came)
    assert parts.within(parts.Bounds(type="decimal", least="1.00", most="50.00"), "50.00")


def test_a_pattern_is_for_the_whole_text_and_no_text_makes_it_run_for_ever() -> None:
    bounds = parts.Bounds(type="text", longest=60, pattern="(a+)+")
    assert parts.within(bounds, "a" * 50)
    assert not parts.within(bounds, "a" * 50 + "!")
    assert not parts.within(bounds, "a\n")


def test_an_operation_id_that_depends_on_what_is_open_is_no_plan(house: House, script: Script) -> None:
    late = Late(source=FromSignal(step="hear"), bounds=Bounds(type="text", one_of=("7", "8")))
    pays = Step(name="pay", tool="pay", arguments={"order": late, "amount": "1"})
    hears = Signal(name="hear", signal="which")
    SCRIPT.proposals = [plan(hears, pays)]  # type: ignore[arg-type]
    state = advance(house.start())
    assert codes(state) == ["planner_refused"]
    assert "depends on an argument" in state.reasons[0].evidence
