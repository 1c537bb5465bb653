"""What an unknown effect may do: each cell of the table, at its moments; and the one next safe action."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from runs.machine import decide, expiry
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical
from runs.machine.safety import (
    Action,
    Kind,
    may_resend,
    next_safe_action,
    patience_ends,
    verdict,
)
from runs.machine.transitions import Decision
from tests.machine.lives import (
    LIVES,
    SENDER,
    T0,
    TERMS,
    WHOLE,
    Life,
    answer,
    asked,
    compensating,
    executing,
    in_flight,
    match,
    receipt,
    seconds,
    send,
    unknown,
    waiting,
)

TICK = timedelta(microseconds=1)
BEFORE, SETTLED, PATIENCE = T0 + seconds(30), T0 + WHOLE, T0 + TERMS.patience


def test_settled_is_the_latest_send_and_all_that_was_declared() -> None:
    life = unknown()
    assert life.effect.settled_at == T0 + seconds(5 + 20 + 60)


@pytest.mark.parametrize("when", [BEFORE, SETTLED - TICK, SETTLED, PATIENCE + WHOLE])
def test_found_as_sent_is_a_receipt_at_any_time(when: Any) -> None:
    life = unknown()
    assert verdict(life.effect, answer(match(life)), when).kind is Kind.RECEIPT


@pytest.mark.parametrize(
    ("when", "kind"),
    [
        (BEFORE, Kind.ASK_AGAIN),
        (SETTLED, Kind.ASK_AGAIN),
        (PATIENCE - TICK, Kind.ASK_AGAIN),
        (PATIENCE, Kind.UNKNOWN),
    ],
)
@pytest.mark.parametrize(
    "said",
    ["pending", "failure", "other account"],
)
def test_no_clear_answer_is_asked_again_until_patience_ends(when: Any, kind: Kind, said: str) -> None:
    life = unknown()
    answers = {
        "pending": answer(match(life, final=False)),
        "failure": answer(failure="503"),
        "other account": answer(account="another"),
    }
    assert verdict(life.effect, answers[said], when).kind is kind


DIFFERENT = {
    "other arguments": {"arguments": e.raw('{"amount":"99.00","order":"7"}')},
    "another key": {"key": "f" * 64},
    "another round": {"operation_id": "pay:7#1", "key": None},
    "another account in the record": {"account": "another"},
    "reversed or in part": {"reversed": True},
    "an argument that cannot be compared": {"arguments": e.raw('{"amount":{"as_escaped_json":"NaN"}}')},
    "a truth that Python takes for a number": {"arguments": e.raw('{"amount":true}')},
}


@pytest.mark.parametrize("more", DIFFERENT.values(), ids=list(DIFFERENT))
@pytest.mark.parametrize("when", [BEFORE, PATIENCE + WHOLE])
def test_a_record_that_differs_is_a_conflict_at_any_time(more: dict[str, Any], when: Any) -> None:
    life = unknown()
    says = verdict(life.effect, answer(match(life, **more)), when)
    assert says.kind is Kind.CONFLICT
    assert says.why


def test_one_and_true_are_not_the_same_argument() -> None:
    life = unknown()
    effect = replace(life.effect, arguments='{"amount":1}')
    found = match(life, arguments=e.raw('{"amount":true}'))
    assert verdict(effect, answer(found), SETTLED).kind is Kind.CONFLICT


def test_several_records_under_one_operation_id_are_a_conflict() -> None:
    life = unknown()
    assert verdict(life.effect, answer(match(life), match(life)), BEFORE).kind is Kind.CONFLICT


def test_a_record_without_key_and_with_fewer_arguments_is_compared_by_what_it_shows() -> None:
    life = unknown()
    found = match(life, key=None, arguments=e.raw('{"amount":"10.00","bank_note":"x"}'))
    assert verdict(life.effect, answer(found), BEFORE).kind is Kind.RECEIPT


def test_not_found_before_settled_at_is_no_evidence_however_long_the_asker_waited() -> None:
    life = unknown()
    says = verdict(life.effect, answer(uptime=SENDER.uptime + WHOLE * 9), SETTLED - TICK)
    assert (says.kind, says.ask_at) == (Kind.ASK_AGAIN, SETTLED)


def test_not_found_counts_at_once_where_the_same_clock_has_waited_for_all_that_was_declared() -> None:
    life = unknown()
    assert verdict(life.effect, answer(), SETTLED).kind is Kind.NOT_EXECUTED


@pytest.mark.parametrize("said", [{"boot": "boot-b"}, {"uptime": SENDER.uptime + WHOLE - TICK}])
def test_else_not_found_is_heard_twice(said: dict[str, Any]) -> None:
    """The database's clock alone is never believed: it may have jumped."""
    life = unknown()
    says = verdict(life.effect, answer(**said), SETTLED)
    assert says.kind is Kind.ASK_AGAIN
    assert says.ask_at == SETTLED + TERMS.timeout + TERMS.settle


AGAIN = TERMS.timeout + TERMS.settle
HEARD = seconds(5)


def _heard(life: Life, **more: Any) -> Life:
    """Heard once on another host, at its uptime of five seconds."""
    said = answer(**{"boot": "boot-b", "uptime": HEARD, **more})
    return life.take(*asked(life, said))


def _second(life: Life, uptime: timedelta = HEARD + AGAIN, boot: str = "boot-b") -> Kind:
    return verdict(life.effect, answer(boot=boot, uptime=uptime), SETTLED + WHOLE).kind


def test_heard_again_after_timeout_and_settle_by_the_askers_clock_it_counts() -> None:
    life = _heard(unknown().after(WHOLE))
    assert _second(life) is Kind.NOT_EXECUTED
    assert _second(life, HEARD + AGAIN - TICK) is Kind.ASK_AGAIN
    assert _second(life, boot="boot-c") is Kind.ASK_AGAIN


def test_what_was_heard_too_early_does_not_count_as_the_first_time() -> None:
    assert _second(_heard(unknown().after(WHOLE - TICK))) is Kind.ASK_AGAIN


@pytest.mark.parametrize("said", [{"failure": "503"}, {"account": "another"}])
def test_a_failure_or_another_account_does_not_count_as_the_first_time(said: dict[str, Any]) -> None:
    assert _second(_heard(unknown().after(WHOLE), **said)) is Kind.ASK_AGAIN


def test_a_resend_starts_all_waiting_anew() -> None:
    life = unknown().after(WHOLE)
    life.take(*asked(life, answer()))
    life.take(*send(life))
    assert life.effect.settled_at == SETTLED + WHOLE
    life.take(*decide.found_open(life.state))
    assert verdict(life.effect, answer(uptime=SENDER.uptime), SETTLED + WHOLE).kind is Kind.ASK_AGAIN


def test_asking_backs_off_and_never_beyond_patience() -> None:
    life = unknown()
    gaps = []
    for _ in range(12):
        says = verdict(life.effect, answer(failure="503"), life.at)
        if says.kind is Kind.UNKNOWN or says.ask_at is None:
            break
        gaps.append(says.ask_at - life.at)
        life.take(*asked(life, answer(failure="503"))).after(says.ask_at - life.at)
    assert gaps == sorted(gaps[:-1]) + gaps[-1:]
    assert gaps[0] == seconds(1)
    assert life.at <= patience_ends(life.effect)


def test_patience_is_never_shorter_than_the_time_in_which_it_may_settle() -> None:
    life = unknown()
    hasty = replace(life.effect, terms=replace(TERMS, patience=seconds(1)))
    assert patience_ends(hasty) == hasty.settled_at


RETENTIONS = {
    timedelta(hours=10): timedelta(hours=1),
    timedelta(hours=20): timedelta(hours=2),
    timedelta(hours=2): timedelta(hours=1),
    timedelta(minutes=10): timedelta(minutes=1),
}


@pytest.mark.parametrize(("retention", "margin"), RETENTIONS.items())
def test_a_resend_ends_before_the_keys_retention_with_a_margin(
    retention: timedelta, margin: timedelta
) -> None:
    """A tenth, and at least an hour where that leaves as much again."""
    life = unknown()
    effect = replace(life.effect, terms=replace(TERMS, retention=retention))
    last = T0 + retention - margin - TERMS.dispatch_window - TERMS.timeout
    assert may_resend(effect, last)
    assert not may_resend(effect, last + TICK)


def test_retention_is_counted_from_the_first_send() -> None:
    life = unknown().after(WHOLE)
    life.take(*asked(life, answer()))
    life.take(*send(life))
    last = T0 + timedelta(hours=9) - TERMS.dispatch_window - TERMS.timeout
    assert may_resend(life.effect, last)
    assert not may_resend(life.effect, last + TICK)


def test_where_keys_are_not_honoured_nothing_is_sent_again_by_itself() -> None:
    life = unknown().after(WHOLE)
    assert not may_resend(replace(life.effect, terms=replace(TERMS, retention=None)), life.at)


def test_not_executed_and_no_key_any_more_needs_a_person() -> None:
    life = unknown().after(timedelta(hours=11))
    events = asked(life, answer(uptime=SENDER.uptime + timedelta(hours=11)))
    assert [type(x) for x in events] == [e.EffectQueried, e.HumanNeeded]
    assert isinstance(events[1], e.HumanNeeded)
    assert [r.code for r in events[1].reasons] == ["effect_unknown"]
    assert events[1].reasons[0].evidence


def test_nothing_is_known_to_be_dead_but_what_was_seen_to_be() -> None:
    life = unknown().after(WHOLE)
    keyless = replace(life.effect, terms=replace(TERMS, retention=None))
    assert may_resend(keyless, life.at, senders_gone=True)
    assert not may_resend(keyless, life.at)
    assert may_resend(replace(keyless, terms=replace(keyless.terms, guarded=True)), life.at)


BLIND = replace(TERMS, queryable=False, retention=None)


def _blind_in_flight() -> Life:
    life = executing()
    return life.take(*decide.next_send(life.state, terms=BLIND, account="acct", sender=SENDER, now=life.at))


def test_a_blind_effect_without_the_mark_was_not_sent() -> None:
    life = _blind_in_flight()
    life.take(*decide.found_open(life.state))
    assert life.state.state is s.State.EXECUTING
    assert life.effect.status is s.EffectStatus.NOT_EXECUTED
    (event,) = send(life)
    assert isinstance(event, e.EffectSent)


def test_a_blind_effect_with_the_mark_needs_a_person_at_once() -> None:
    life = _blind_in_flight()
    life.take(*decide.dispatched(life.state, 1))
    life.take(*decide.found_open(life.state))
    assert life.state.state is s.State.NEEDS_HUMAN
    assert [r.code for r in life.state.reasons] == ["effect_unknown"]
    assert life.effect.status is s.EffectStatus.UNKNOWN


def test_the_mark_of_one_send_says_nothing_about_the_next() -> None:
    life = _blind_in_flight()
    life.take(*decide.found_open(life.state))
    life.take(*send(life))
    life.take(*decide.dispatched(life.state, 1))
    life.take(*decide.found_open(life.state))
    assert life.effect.status is s.EffectStatus.UNKNOWN


def _keyed() -> Life:
    """Unknown, not to be asked about, its key honoured for ten hours."""
    life = executing()
    terms = replace(TERMS, queryable=False)
    life.take(*decide.next_send(life.state, terms=terms, account="acct", sender=SENDER, now=life.at))
    return life.take(*decide.found_open(life.state))


def test_what_cannot_be_asked_about_is_sent_again_under_its_key_until_patience_ends() -> None:
    life = _keyed()
    assert next_safe_action(life.state).action is Action.RESEND
    key = life.effect.key
    for _ in range(4):
        (event,) = decide.resend_unknown(life.state, 1, sender=SENDER, now=PATIENCE - TICK)
        assert isinstance(event, e.EffectSent)
        assert life.take(event, *decide.found_open(life.state)).effect.key == key
    life.take(*decide.found_open(life.state))
    (stop,) = decide.resend_unknown(life.state, 1, sender=SENDER, now=life.effect.settled_at + TERMS.patience)
    assert isinstance(stop, e.HumanNeeded)


@pytest.mark.parametrize("state", s.State)
def test_the_next_safe_action_is_total_and_always_the_same(state: s.State) -> None:
    life = LIVES[state]()
    action = next_safe_action(life.state)
    assert action == next_safe_action(life.state)
    assert (action.action is Action.NONE) is (state in s.TERMINAL)


ACTIONS = {
    s.State.PLANNING: (Action.RUN, None),
    s.State.WAITING_APPROVAL: (Action.REVIEW, "approve_plans"),
    s.State.APPROVED: (Action.RUN, None),
    s.State.EXECUTING: (Action.RUN, None),
    s.State.WAITING: (Action.WAIT, None),
    s.State.UNKNOWN: (Action.ASK, None),
    s.State.NEEDS_HUMAN: (Action.DECIDE, "operate_runs"),
    s.State.CANCELLING: (Action.FINISH_CANCEL, None),
    s.State.COMPENSATING: (Action.UNDO, None),
    s.State.SUCCEEDED: (Action.NONE, None),
    s.State.CANCELLED: (Action.NONE, None),
    s.State.RESTARTED: (Action.NONE, None),
}


@pytest.mark.parametrize("state", s.State)
def test_the_next_safe_action_says_what_and_who(state: s.State) -> None:
    action = next_safe_action(LIVES[state]().state)
    assert (action.action, action.right) == ACTIONS[state]


def test_in_flight_nobody_may_send_again() -> None:
    action = next_safe_action(in_flight().state)
    assert (action.action, action.effect) == (Action.SETTLE, 1)
    assert "send_again" in action.not_safe


def test_an_unknown_effect_of_a_stopped_run_is_reconciled_first() -> None:
    life = unknown().take(*decide.human("effect_unknown"), *decide.human("log_damaged"))
    action = next_safe_action(life.state)
    assert (action.action, action.effect, action.right) == (Action.RECONCILE, 1, "reconcile_effects")
    assert action.reason == "log_damaged"
    assert action.decisions == (Decision.CANCEL,)
    assert {"send_again", "restart", "end"} <= set(action.not_safe)


def test_a_cancel_that_nothing_holds_up_any_more_is_the_workers() -> None:
    life = unknown().take(*decide.human("no_progress"))
    life.take(*decide.cancel(life.state, note=""))
    assert next_safe_action(life.state).action is Action.RECONCILE
    life.take(*receipt(life))
    assert next_safe_action(life.state).action is Action.FINISH_CANCEL


def test_an_expired_request_is_renewed() -> None:
    life = waiting().after(timedelta(hours=1))
    life.take(*expiry.recorded(life.state, life.at))
    assert next_safe_action(life.state).action is Action.RENEW


def test_a_late_receipt_of_an_older_holder_moves_nothing() -> None:
    """It was refused once, but a later holder has sent again: only the latest send says what happened."""
    life = unknown().after(WHOLE)
    life.take(*asked(life, answer()))
    life.take(*send(life))
    events = receipt(life, executed=False, late=True)
    assert [type(x) for x in events] == [e.EvidenceKept]
    assert life.take(*events).effect.status is s.EffectStatus.IN_FLIGHT


@pytest.mark.parametrize(
    ("stored", "late", "contradicts"),
    [
        ((True, "ref-1"), (True, "ref-1"), False),
        ((True, "ref-1"), (False, ""), True),
        ((True, "ref-1"), (True, "ref-2"), True),
        ((False, ""), (True, "ref-1"), True),
        ((False, ""), (False, ""), False),
    ],
)
def test_late_evidence_is_compared_with_the_record(
    stored: tuple[bool, str], late: tuple[bool, str], contradicts: bool
) -> None:
    life = in_flight()
    life.take(*receipt(life, executed=stored[0], reference=stored[1]))
    events = receipt(life, executed=late[0], reference=late[1], late=True)
    kept = events[0]
    assert isinstance(kept, e.EvidenceKept)
    assert kept.contradicts is contradicts
    life.take(*events)
    assert ("effect_conflict" in [r.code for r in life.state.reasons]) is contradicts


def test_a_contradiction_leaves_a_closed_run_closed() -> None:
    life = LIVES[s.State.SUCCEEDED]()
    life.take(*receipt(life, executed=False, late=True))
    assert life.state.state is s.State.SUCCEEDED
    assert isinstance(life.log[-1].event, e.EvidenceKept)
    assert life.log[-1].event.contradicts


def test_the_arguments_of_a_record_are_shown_in_the_conflict() -> None:
    life = unknown()
    found = match(life, arguments=e.raw(canonical({"amount": "99.00"})))
    assert "99.00" in verdict(life.effect, answer(found), SETTLED).why


@pytest.mark.parametrize(
    ("code", "right"), [("log_damaged", "cancel_runs"), ("compensation_failed", "operate_runs")]
)
def test_what_can_only_be_ended_takes_the_right_to_end(code: str, right: str) -> None:
    life = compensating().take(*decide.human(code))
    action = next_safe_action(life.state)
    assert (action.right, Decision.END in action.decisions) == (right, True)
