"""Commands: what a worker or a person may do, and what follows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.back_off import back_off
from runs.machine.canonical import idempotency_key
from runs.machine.transitions import Decision, Refused
from tests.machine.lives import (
    OPERATOR,
    T0,
    WHOLE,
    Life,
    answer,
    asked,
    executing,
    in_flight,
    match,
    observed,
    plan_of,
    planning,
    proposed,
    receipt,
    seconds,
    send,
    step,
    stopped,
    unknown,
)


def test_a_plan_without_need_of_approval_is_approved_by_the_policy() -> None:
    life = planning()
    assert [type(x) for x in proposed(life)] == [e.PlanProposed, e.PlanApprovedByPolicy]


def test_an_approval_is_bound_to_all_that_was_shown() -> None:
    life = planning()
    _, asks = proposed(life, needed=2)
    assert isinstance(asks, e.ApprovalRequested)
    conditions = e.value_of(asks.conditions)
    assert conditions["plan_digest"] == asks.digest
    assert (conditions["needed"], conditions["goal_version"]) == (2, 1)
    assert conditions["arguments_digests"] == [step().arguments_digest]


BAD_PLANS = {
    "no steps": (),
    "two of one name": (step("a", "x"), step("a", "y")),
    "two equal operation ids": (step("a", "x"), step("b", "x")),
}


@pytest.mark.parametrize("steps", BAD_PLANS.values(), ids=list(BAD_PLANS))
def test_what_no_plan_may_have_is_refused(steps: tuple[s.PlanStep, ...]) -> None:
    life = planning()
    plan = replace(plan_of(life.state), steps=steps)
    events = decide.proposed(
        life.state, plan, claim="", requirement=decide.Requirement(needed=0, right="x", stands_for=seconds(1),
        policy_version="1"), request="r", now=T0,
    )  # fmt: skip
    assert [type(x) for x in events] == [e.ProposalRefused]


def test_equal_operation_ids_of_two_systems_are_two_effects() -> None:
    life = planning()
    assert isinstance(proposed(life, step("a", "x"), step("b", "x", system="mail"))[0], e.PlanProposed)


def test_a_planner_that_is_refused_again_and_again_needs_a_person() -> None:
    life = planning()
    for _ in range(4):
        life.take(*decide.proposal_refused(life.state, ("no",)))
        assert life.state.state is s.State.PLANNING
    life.take(*decide.proposal_refused(life.state, ("no",)))
    assert [r.code for r in life.state.reasons] == ["planner_refused"]


def test_failures_back_off_and_then_need_a_person() -> None:
    life, gaps = planning(), []
    for _ in range(4):
        (event,) = decide.attempt_failed(
            life.state, what="planner", detail="x", reason="planner_refused", now=life.at
        )
        assert isinstance(event, e.AttemptFailed)
        gaps.append(event.retry_at - life.at)
        life.take(event)
    assert gaps == [seconds(1), seconds(2), seconds(4), seconds(8)]
    (event,) = decide.attempt_failed(life.state, what="p", detail="x", reason="planner_refused", now=life.at)
    assert isinstance(event, e.HumanNeeded)


def test_every_wait_doubles_and_none_is_longer_than_a_minute() -> None:
    waits = [back_off(times) for times in (*range(8), 1_000_000)]
    assert waits == [seconds(n) for n in (1, 2, 4, 8, 16, 32, 60, 60, 60)]


def test_the_first_send_carries_the_key_of_its_intent() -> None:
    life = executing()
    (event,) = send(life)
    assert isinstance(event, e.EffectIntended)
    assert event.key == idempotency_key(run_id="run_A", step="pay:7", arguments=step().arguments, round_=0)
    assert (event.operation_id, event.round) == ("pay:7", 0)


def test_nothing_is_sent_while_an_effect_is_open() -> None:
    for life in (in_flight(), unknown()):
        with pytest.raises(Refused):
            send(life)


def test_nothing_is_sent_after_the_runs_deadline() -> None:
    life = planning(deadline=T0 + seconds(9))
    life.take(*proposed(life), e.RevalidationPassed(checks=())).after(seconds(10))
    (event,) = send(life)
    assert isinstance(event, e.HumanNeeded)
    assert [r.code for r in event.reasons] == ["deadline_passed"]


def test_after_not_found_it_is_sent_again_under_the_same_key() -> None:
    life = unknown().after(WHOLE)
    life.take(*asked(life, answer()))
    (event,) = send(life)
    assert isinstance(event, e.EffectSent)
    key = life.effect.key
    assert life.take(event).effect.key == key
    assert len(life.effect.sends) == 2


def test_an_operation_with_other_arguments_under_the_same_id_is_a_conflict() -> None:
    life = in_flight()
    life.take(*receipt(life), e.PlanVoided(version=1, causes=()))
    life.take(*proposed(life, step(name="again", amount="99.00")), e.RevalidationPassed(checks=()))
    (event,) = send(life)
    assert isinstance(event, e.HumanNeeded)
    assert [r.code for r in event.reasons] == ["effect_conflict"]


def test_a_refused_call_is_done_again_only_in_a_new_round() -> None:
    life = in_flight()
    life.take(*receipt(life, executed=False))
    assert life.state.state is s.State.NEEDS_HUMAN
    life.take(*decide.decided(life.state, Decision.RETRY, note="paid up"), by=OPERATOR)
    (event,) = send(life)
    assert isinstance(event, e.EffectIntended)
    assert (event.operation_id, event.round) == ("pay:7#1", 1)
    assert event.key != life.effect.key


def test_each_refusal_takes_another_round() -> None:
    life = in_flight()
    for round_ in (1, 2, 3):
        life.take(*receipt(life, executed=False))
        life.take(*decide.decided(life.state, Decision.RETRY, note=""))
        life.take(*send(life))
        assert life.effect.operation_id == f"pay:7#{round_}"
    assert len({x.key for x in life.state.effects.values()}) == 4


def test_resuming_without_a_new_round_sends_nothing() -> None:
    life = in_flight()
    life.take(*receipt(life, executed=False))
    life.take(e.RunResumed(decision="resume", note=""))
    (event,) = send(life)
    assert isinstance(event, e.HumanNeeded)


def test_a_round_belongs_to_the_operation_and_not_to_the_name_of_a_step() -> None:
    """A refused operation was done in round 1; a later plan calls the step by another name."""
    life = in_flight(step(), step("other", "other"))
    life.take(*receipt(life, executed=False))
    life.take(*decide.decided(life.state, Decision.RETRY, note=""))
    life.take(*send(life))
    life.take(*receipt(life), e.PlanVoided(version=1, causes=()))
    life.take(*proposed(life, step("renamed")), e.RevalidationPassed(checks=()))
    (event,) = send(life)
    assert isinstance(event, e.EffectAnswered)
    assert event.effect == 2


def test_a_renamed_step_whose_operation_was_refused_can_be_retried() -> None:
    life = in_flight()
    life.take(*receipt(life, executed=False))
    life.take(*decide.decided(life.state, Decision.REPLAN, note="rename it"))
    life.take(*proposed(life, step("renamed")), e.RevalidationPassed(checks=()))
    life.take(*send(life))
    assert [r.code for r in life.state.reasons] == ["tool_failed"]
    life.take(*decide.decided(life.state, Decision.RETRY, note=""))
    (event,) = send(life)
    assert isinstance(event, e.EffectIntended)
    assert event.operation_id == "pay:7#1"


def test_what_was_refused_can_be_planned_with_other_arguments_and_done_in_a_new_round() -> None:
    life = in_flight()
    life.take(*receipt(life, executed=False))
    life.take(*decide.decided(life.state, Decision.REPLAN, note="less"))
    life.take(*proposed(life, step(amount="9.00")), e.RevalidationPassed(checks=()))
    life.take(*send(life))
    assert [r.code for r in life.state.reasons] == ["tool_failed"]
    life.take(*decide.decided(life.state, Decision.RETRY, note=""))
    (event,) = send(life)
    assert isinstance(event, e.EffectIntended)
    assert (event.operation_id, e.value_of(event.arguments)["amount"]) == ("pay:7#1", "9.00")


def test_what_is_volatile_is_not_part_of_the_key() -> None:
    keys = set()
    for amount in ("10.00", "11.00"):
        (event,) = send(executing(step(amount=amount, volatile=("amount",))))
        assert isinstance(event, e.EffectIntended)
        keys.add(event.key)
    assert len(keys) == 1


def test_resuming_with_an_unknown_effect_asks_about_it_first() -> None:
    life = unknown().take(*decide.human("no_progress"))
    life.take(*decide.decided(life.state, Decision.RESUME, note=""))
    assert life.state.state is s.State.UNKNOWN
    assert life.effect.next_ask_at == life.at


def test_cancel_waits_for_an_open_effect_and_is_not_taken_twice() -> None:
    life = unknown()
    life.take(*decide.cancel(life.state, note=""), by=OPERATOR)
    assert life.state.state is s.State.UNKNOWN
    with pytest.raises(Refused):
        decide.cancel(life.state, note="")
    life.take(*receipt(life))
    life.take(*decide.begin_cancel(life.state))
    assert life.log[-1].event == e.CancelBegan()


def test_a_run_that_is_to_end_has_no_successor() -> None:
    life = unknown().take(*decide.human("no_progress"))
    life.take(*decide.cancel(life.state, note=""))
    life.take(*receipt(life))
    assert life.state.state is s.State.NEEDS_HUMAN
    with pytest.raises(Refused):
        decide.restarted(life.state, successor="run_B", note="")


def test_an_open_obligation_keeps_a_run_from_succeeding() -> None:
    life = executing()
    with pytest.raises(Refused):
        decide.finished(life.state)


def test_a_receipt_that_does_not_hold_its_postcondition_needs_a_person() -> None:
    life = in_flight()
    events = decide.executed(
        life.state, 1, reference="ref-1", evidence="{}", problem="another amount", versions={}
    )
    life.take(*events)
    assert life.effect.status is s.EffectStatus.CONFIRMED
    assert [r.code for r in life.state.reasons] == ["postcondition_failed"]


CONCLUSIONS = {
    "as sent": ({}, "happened", ""),
    "pending": ({"final": False}, "happened", "pending"),
    "differs": ({"key": "f" * 64}, "happened", "differs"),
    "a match is no absence": ({}, "not_happened", "match"),
}


@pytest.mark.parametrize(("more", "what", "condition"), CONCLUSIONS.values(), ids=list(CONCLUSIONS))
def test_what_a_person_may_conclude_from_a_match(more: dict[str, object], what: str, condition: str) -> None:
    life = unknown().take(*decide.human("effect_unknown")).after(WHOLE)
    life.take(*decide.asked_by_person(life.state, 1, answer(match(life, **more)), evidence="[]"))
    assert decide.conclusion_conditions(life.effect, life.effect.asks[-1], life.at)[what] == condition


ABSENCES = {
    "heard too early": (WHOLE - timedelta(microseconds=1), {}, "too_early"),
    "heard in time": (WHOLE, {}, ""),
    "elsewhere": (WHOLE, {"account": "another"}, "other_account"),
    "no answer": (WHOLE, {"failure": "503"}, "no_answer"),
}


@pytest.mark.parametrize(("gap", "said", "condition"), ABSENCES.values(), ids=list(ABSENCES))
def test_when_a_person_may_conclude_that_it_did_not_happen(
    gap: timedelta, said: dict[str, str], condition: str
) -> None:
    life = unknown().take(*decide.human("effect_unknown")).after(gap)
    life.take(*decide.asked_by_person(life.state, 1, answer(**said), evidence="[]"))  # type: ignore[arg-type]
    ask = life.effect.asks[-1]
    assert decide.conclusion_conditions(life.effect, ask, life.at)["not_happened"] == condition
    if condition:
        with pytest.raises(decide.ConclusionRefused, match=condition):
            decide.concluded(life.state, 1, happened=False, asked_seq=ask.seq, note="", now=life.at)


def _attested(life: Life, person: str, *, happened: bool = False) -> None:
    reference = "ref-1" if happened else ""
    life.take(
        *decide.attested(
            life.state,
            1,
            happened=happened,
            reference=reference,
            how="I rang them",
            person=person,
            now=life.at,
        )
    )


def test_it_takes_two_people_where_the_effect_cannot_be_undone() -> None:
    life = unknown().take(*decide.human("effect_unknown")).after(WHOLE)
    _attested(life, "anna")
    assert life.effect.status is s.EffectStatus.UNKNOWN
    with pytest.raises(decide.ConclusionRefused, match="second_person"):
        _attested(life, "anna")
    _attested(life, "ben")
    assert life.log[-1].event == e.AttestationAccepted(effect=1, happened=False, reference="")


def test_two_people_who_say_different_things_settle_nothing() -> None:
    life = unknown().take(*decide.human("effect_unknown")).after(WHOLE)
    _attested(life, "anna", happened=True)
    _attested(life, "ben", happened=False)
    assert life.effect.status is s.EffectStatus.UNKNOWN


def test_that_it_did_not_happen_is_not_said_before_it_is_settled() -> None:
    life = unknown().take(*decide.human("effect_unknown")).after(WHOLE - timedelta(microseconds=1))
    with pytest.raises(decide.ConclusionRefused, match="too_early"):
        _attested(life, "anna")


def test_a_statement_about_an_earlier_send_does_not_count_for_a_later_one() -> None:
    life = unknown().take(*decide.human("effect_unknown")).after(WHOLE)
    _attested(life, "anna")
    life.take(*decide.asked_by_person(life.state, 1, answer(), evidence="[]"))
    asked_at = life.effect.asks[-1].seq
    life.take(
        *decide.concluded(life.state, 1, happened=False, asked_seq=asked_at, note="", now=life.at),
        by=OPERATOR,
    )
    life.take(e.RevalidationPassed(checks=()), *send(life))
    life.take(*decide.found_open(life.state), *decide.human("effect_unknown")).after(WHOLE)
    _attested(life, "ben")
    assert life.effect.status is s.EffectStatus.UNKNOWN
    _attested(life, "anna")
    assert life.log[-1].event == e.AttestationAccepted(effect=1, happened=False, reference="")


@pytest.mark.parametrize("happened", [True, False])
def test_an_answer_that_a_later_one_contradicts_is_no_ground(happened: bool) -> None:
    life = unknown().take(*decide.human("effect_unknown")).after(WHOLE)
    found, nothing = answer(match(life)), answer()
    for said in (found, nothing) if happened else (nothing, found):
        life.take(*decide.asked_by_person(life.state, 1, said, evidence="[]"))
    first, second = life.effect.asks
    with pytest.raises(decide.ConclusionRefused):
        decide.concluded(life.state, 1, happened=happened, asked_seq=first.seq, note="", now=life.at)
    assert decide.concluded(life.state, 1, happened=not happened, asked_seq=second.seq, note="", now=life.at)


def test_an_outage_later_takes_nothing_from_an_answer() -> None:
    life = unknown().take(*decide.human("effect_unknown")).after(WHOLE)
    for said in (answer(match(life)), answer(failure="503")):
        life.take(*decide.asked_by_person(life.state, 1, said, evidence="[]"))
    first = life.effect.asks[0]
    assert decide.concluded(life.state, 1, happened=True, asked_seq=first.seq, note="", now=life.at)


def test_nothing_is_concluded_from_an_answer_that_was_never_given() -> None:
    life = unknown().take(*decide.human("effect_unknown"))
    with pytest.raises(decide.ConclusionRefused, match="not_asked"):
        decide.concluded(life.state, 1, happened=True, asked_seq=99, note="", now=life.at)


def test_a_settled_effect_is_not_concluded_again() -> None:
    life = in_flight()
    life.take(*receipt(life))
    with pytest.raises(Refused):
        decide.concluded(life.state, 1, happened=True, asked_seq=1, note="", now=life.at)


def test_reading_without_end_needs_a_person() -> None:
    life = planning()
    for _ in range(decide.READS_IN_A_ROW):
        life.take(*decide.read(life.state, observed()))
    life.take(*decide.read(life.state, observed()))
    assert [r.code for r in life.state.reasons] == ["planner_refused"]


def test_a_decision_is_refused_while_the_run_needs_nobody() -> None:
    with pytest.raises(Refused):
        decide.decided(executing().state, Decision.RESUME, note="")
    assert decide.decided(stopped("asked").state, Decision.REPLAN, note="yes")


def test_a_conclusion_from_an_answer_that_a_newer_one_replaced_is_refused() -> None:
    life = unknown().take(*decide.human("effect_unknown")).after(WHOLE)
    life.take(*decide.asked_by_person(life.state, 1, answer(), evidence="[]"))
    older = life.effect.asks[-1].seq
    life.take(*decide.asked_by_person(life.state, 1, answer(match(life)), evidence="[]"))
    with pytest.raises(decide.ConclusionRefused, match="newer_answer"):
        decide.concluded(life.state, 1, happened=False, asked_seq=older, note="", now=life.at)
