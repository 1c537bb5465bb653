"""A revised goal: what was made for the one before ends, with the cause, in every state, and nothing is sent on it."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from approvals.models import Request, Verdict
from approvals.outcomes import StaleError
from runs import actions, agents, recovery
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine.safety import decisions_of
from runs.machine.state import EffectStatus, RequestStatus, RunState, State
from runs.machine.transitions import Decision, Refused
from runs.models import PlanVersion, Run
from runs.rereduction import rebuild
from tests.fixtures.clock import Clock
from tests.outside import PAYER, World
from tests.people import House, advance, assert_replays
from tests.runs.scripted import Script, pay, plan
from tests.runs.test_children import children, delegates
from tests.runs.test_evidence import kinds

RACES = 40
CAUSE = (e.Cause(what="goal", subject="", was="1", now="2"),)
TELL = {"tool": "tell", "order": "7"}
SIGN = (e.ActorKind.PERSON, "Operator")


def ended(state: RunState, plan: int = 1) -> None:
    """The plan ended with the goal that it was for."""
    (old,) = (p for p in state.plans if p.version == plan)
    assert (old.voided, old.plan.goal_version) == (CAUSE, 1)


def voided(state: RunState, number: int = 0) -> None:
    """The request or approval ended with the goal that it was for, in the log and beside it."""
    request = state.requests[number]
    assert (request.status, request.causes) == (RequestStatus.VOIDED, CAUSE)
    row = Request.objects.get(pk=request.id)
    assert row.state == "voided" and row.cause == {"changes": [{"what": "goal", "from": "1", "to": "2"}]}


def goes_on(run: Run, house: House, world: World, *calls: str) -> RunState:
    """Another plan, for goal v2, is made, approved where that takes a person, and carried out."""
    state = advance(run)
    assert state.plan and state.plan.plan.goal_version == 2
    if state.state is State.WAITING_APPROVAL:
        house.decide(run, house.second)
        state = advance(run)
    assert state.state is State.SUCCEEDED
    assert world.calls == list(calls)
    return state


def test_while_nothing_is_planned_yet(house: House, world: World) -> None:
    run = house.start()

    state = house.revise(run, "Pay half of order 1042")

    assert state.state is State.PLANNING
    assert [(g.version, g.text) for g in state.goals] == [
        (1, "Pay order 1042"),
        (2, "Pay half of order 1042"),
    ]
    assert (state.goal.author.kind, state.goal.author.name) == SIGN
    assert state.goal.reason == "it was too much"
    row = Run.objects.get(pk=run.pk)
    assert (row.goal, row.goal_version) == ("Pay half of order 1042", 2)
    goes_on(run, house, world, "pay:1042", "tell:1042")


def test_while_the_planner_thinks(house: House, script: Script, world: World) -> None:
    """What it proposes for the goal before is not taken: it is asked again, with the new one."""
    run = house.start()

    def slow(view: agents.View) -> agents.Proposal:
        house.revise(run, "Pay nothing but 1.00")
        return plan(pay())(view)

    script.proposals = [slow, plan(pay(amount="1.00"))]
    state = advance(run)

    assert [p.plan.goal_version for p in state.plans] == [2]
    assert [v.goal for v in script.views] == ["Pay order 1042", "Pay nothing but 1.00"]
    assert [x[2]["amount"] for x in world.executed] == ["1.00"]


def test_while_a_plan_waits_for_approval(house: House, world: World) -> None:
    run = house.waiting()

    state = house.revise(run)

    assert state.state is State.PLANNING
    ended(state)
    voided(state)
    assert PlanVersion.objects.get(run=run).voided_seq == state.seq
    with pytest.raises(StaleError):
        house.decide(run, house.approver)
    goes_on(run, house, world, "pay:2000", "tell:2000")


def test_what_was_approved_and_not_begun_is_not_sent(house: House, world: World) -> None:
    run = house.approved()

    state = house.revise(run)

    assert state.state is State.PLANNING
    ended(state)
    voided(state)
    assert advance(run).state is State.WAITING_APPROVAL
    assert world.calls == []
    goes_on(run, house, world, "pay:2000", "tell:2000")


def test_while_a_step_is_being_sent_it_is_settled_first(house: House, world: World) -> None:
    """The approval ends at once, the plan when the receipt is stored; the step after it is sent on another plan."""
    run = house.approved()

    def meanwhile(when: str) -> None:
        world.hook = None
        state = house.revise(run)
        assert (state.state, state.outdated) == (State.EXECUTING, True)
        assert state.plan and state.plan.voided_seq is None
        voided(state)

    world.hook = meanwhile
    state = advance(run)

    ended(state)
    assert state.effects[1].status is EffectStatus.CONFIRMED
    assert world.calls == ["pay:2000"]
    assert kinds(run).index("ReceiptStored") < kinds(run).index("PlanVoided")
    assert state.open_obligations
    goes_on(run, house, world, "pay:2000", "tell:2000")


def test_the_last_step_in_flight_does_not_end_the_run(house: House, world: World) -> None:
    """Every step is done, of a plan for another goal: the run is planned on, and does not succeed on it."""
    run = house.start("7", "1.00")

    def meanwhile(when: str) -> None:
        if world.calls[-1] == "tell:7":
            world.hook = None
            house.revise(run)

    world.hook = meanwhile
    state = advance(run)

    assert [p.plan.goal_version for p in state.plans] == [1, 2]
    ended(state)
    assert state.state is State.SUCCEEDED


def test_an_unknown_effect_is_reconciled_first(house: House, world: World, clock: Clock) -> None:
    run = house.approved()
    world.answers, world.outage = ["lost"], "the bank is closed"
    assert advance(run).state is State.UNKNOWN

    state = house.revise(run)
    assert (state.state, state.outdated) == (State.UNKNOWN, True)
    voided(state)

    world.outage = ""
    clock.move(timedelta(seconds=3))
    state = advance(run)
    ended(state)
    assert state.state is State.WAITING_APPROVAL
    assert world.calls == ["pay:2000"]


def test_what_did_not_happen_is_not_sent_again_for_the_goal_before(
    house: House, world: World, clock: Clock
) -> None:
    """Nobody had to approve it, so only the goal stands between it and a resend."""
    run = house.start("7", "1.00")
    world.answers, world.outage = ["silent"], "the bank is closed"
    assert advance(run).state is State.UNKNOWN
    house.revise(run)
    clock.move(timedelta(minutes=30))
    world.outage = ""
    state = settled_by_a_person(house, run)

    assert state.state is State.EXECUTING
    state = advance(run)
    told = kinds(run)
    ended(state)
    assert told.index("PlanVoided") < told.index("PlanProposed", told.index("GoalRevised"))
    assert "EffectSent" not in told[: told.index("PlanVoided")]
    assert state.state is State.SUCCEEDED and world.times("pay:7") == 1


def settled_by_a_person(house: House, run: Run) -> RunState:
    """The operator asks the outside, and records that it did not happen."""
    effect = load(run.pk).effects[1]
    answer, evidence, _ = recovery.ask(effect, PAYER.writing(effect.tool))
    actions.record_answer(
        person=house.operator, run_id=run.pk, effect=1, answer=answer, evidence=evidence, submission=uuid4()
    )
    actions.conclude_effect(
        person=house.operator, run_id=run.pk, effect=1, happened=False, asked=load(run.pk).effects[1].asks[-1].seq,
        note="", submission=uuid4(),
    )  # fmt: skip
    return assert_replays(run)


def test_one_that_cannot_be_asked_about_is_a_persons(house: House, world: World, clock: Clock) -> None:
    """It could only be settled by sending it again, and that is not wanted any more."""
    world.answers = ["silent"]
    run = house.scripted([{"tool": "pay_by_key", "order": "8"}, TELL], [TELL])
    assert load(run.pk).state is State.UNKNOWN
    house.revise(run)
    clock.move(timedelta(seconds=90))

    state = advance(run)

    assert [r.code for r in state.reasons] == ["effect_unknown"]
    assert "goal was revised to v2" in state.reasons[0].evidence
    assert world.calls == ["pay:8"]


@pytest.mark.parametrize("wait", [{"timer": 60}, {"signal": "answer"}])
def test_a_wait_ends_with_its_plan(house: House, world: World, wait: dict[str, object]) -> None:
    run = house.scripted([wait, {"tool": "pay", "order": "7"}], [TELL])
    assert load(run.pk).state is State.WAITING

    state = house.revise(run)

    assert state.state is State.PLANNING
    ended(state)
    assert advance(run).state is State.SUCCEEDED
    assert world.calls == ["tell:7"]


def test_children_keep_their_goal_and_are_waited_for(house: House, world: World) -> None:
    run = house.scripted([delegates("1"), {"tool": "pay", "order": "7"}], [TELL])
    (child,) = children(run)

    state = house.revise(run)

    assert (state.state, state.outdated) == (State.WAITING, True)
    assert load(child.pk).goal.text == "Pay 1"
    assert advance(run).state is State.WAITING
    assert advance(child).state is State.SUCCEEDED
    state = advance(run)
    ended(state)
    assert state.state is State.SUCCEEDED
    assert world.calls == ["pay:1", "tell:7"]


def test_of_the_reasons_of_a_stop_those_about_the_world_stay(house: House, world: World) -> None:
    world.answers = ["refused"]
    run = house.start("7", "1.00")
    assert Decision.RETRY in decisions_of(advance(run))

    state = house.revise(run)

    assert (state.state, [r.code for r in state.reasons]) == (State.NEEDS_HUMAN, ["tool_failed"])
    ended(state)
    assert Decision.RETRY not in decisions_of(state) and Decision.REPLAN in decisions_of(state)
    state = house.choose(run, Decision.REPLAN)
    assert state.state is State.PLANNING
    ended(state)


@pytest.mark.parametrize("why", ["rejected", "declined"])
def test_a_goal_answers_what_was_wrong_with_the_plan(house: House, world: World, why: str) -> None:
    run = house.waiting() if why == "rejected" else house.start("7", "1.00", decline="not this goal")
    if why == "rejected":
        house.decide(run, house.approver, Verdict.REJECT, "this is not what we want")
    else:
        advance(run)
    assert load(run.pk).state is State.NEEDS_HUMAN

    state = house.revise(run)

    assert (state.state, state.reasons) == (State.PLANNING, ())


def test_a_run_that_is_over_or_ending_keeps_its_goal(house: House, world: World) -> None:
    over, ending, undoing = house.start("7", "1.00"), house.waiting("8"), house.start("9", "1.00")
    advance(over)
    world.answers, world.outage = ["lost"], "the bank is closed"
    advance(undoing)
    house.cancel(ending)
    house.cancel(undoing)  # asked for, and not begun: an effect is unknown

    for run in (over, ending, undoing):
        with pytest.raises(Refused):
            house.revise(run)
        assert "GoalRevised" not in kinds(run)


def test_rereduction_makes_the_same_tables(house: House, world: World) -> None:
    run = house.approved()
    house.revise(run)
    advance(run)
    before = list(PlanVersion.objects.filter(run=run).order_by("version").values())
    rebuild(run.pk)
    assert list(PlanVersion.objects.filter(run=run).order_by("version").values()) == before
    assert [type(r.event) for r in log(run.pk)].count(e.GoalRevised) == 1
