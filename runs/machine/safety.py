"""What an unknown effect may do, and the one next safe action of a run: functions of the stored rows alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from runs.machine import state as s
from runs.machine.back_off import back_off
from runs.machine.canonical import canonical, parse
from runs.machine.events import MatchFound, text_of
from runs.machine.transitions import Decision, allowed_decisions, first_reason
from runs.machine.waits import Wait, WaitKind

#: The part of a key's retention that is never used: clocks differ, and the call itself takes time.
RETENTION_MARGIN = 0.1
LEAST_MARGIN = timedelta(hours=1)  #: where that leaves as much again to resend in


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The outside's answer to "what became of it", and who heard it on which clock.

    `uptime` is the host's clock that counts while the machine sleeps; it can be compared within one `boot`
    only.
    """

    failure: str | None
    matches: tuple[MatchFound, ...]
    account: str
    boot: str
    uptime: timedelta


class Kind(StrEnum):
    """What follows from an answer."""

    RECEIPT = "receipt"  #: store the receipt, go on
    NOT_EXECUTED = "not_executed"  #: it did not happen
    ASK_AGAIN = "ask_again"
    UNKNOWN = "effect_unknown"  #: a person has to settle it
    CONFLICT = "effect_conflict"  #: the record contradicts what was sent; both are shown


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What follows, with the moment to ask again or the difference in words."""

    kind: Kind
    ask_at: datetime | None = None
    match: MatchFound | None = None
    why: str = ""


def verdict(effect: s.Effect, answer: Answered, now: datetime) -> Verdict:
    """The table "what an unknown effect may do". Never says "send": a resend is decided by `may_resend`."""
    if answer.failure is not None:
        return _patient(effect, now, answer.failure)
    if answer.account != effect.account:
        return _patient(effect, now, f"asked in account {answer.account}, sent in {effect.account}")
    matches = ours(effect, answer.matches)
    if not matches:
        return _not_found(effect, answer, now)
    if len(matches) > 1:
        return Verdict(kind=Kind.CONFLICT, why=f"{len(matches)} records under one operation id")
    return _found(effect, matches[0], now)


def ours(effect: s.Effect, matches: tuple[MatchFound, ...]) -> tuple[MatchFound, ...]:
    """The records that can be of this effect. Where ids repeat, one under another key is another lineage's."""
    if not effect.terms.repeatable:
        return matches
    return tuple(m for m in matches if m.key is None or m.key == effect.key)


def _found(effect: s.Effect, match: MatchFound, now: datetime) -> Verdict:
    if differs := difference(effect, match):
        return Verdict(kind=Kind.CONFLICT, match=match, why=differs)
    if not match.final:
        return _patient(effect, now, "the record is not final yet")
    return Verdict(kind=Kind.RECEIPT, match=match)


def difference(effect: s.Effect, match: MatchFound) -> str:
    """What tells the record from the intent, in words; empty where it is the same effect."""
    sent = parse(effect.arguments)
    shown = parse(text_of(match.arguments))
    other = [
        f"{k}: sent {sent[k]}, found {v}"
        for k, v in shown.items()
        if k in sent and canonical(sent[k]) != canonical(v)
    ]
    if match.operation_id != effect.operation_id:
        other.append(f"operation id: sent {effect.operation_id}, found {match.operation_id}")
    if match.account != effect.account:
        other.append(f"account: sent {effect.account}, found {match.account}")
    if match.key is not None and match.key != effect.key:
        other.append("made under another key")
    if match.reversed:
        other.append("reversed, or done in part")
    return "; ".join(other)


def _not_found(effect: s.Effect, answer: Answered, now: datetime) -> Verdict:
    if now < effect.settled_at:
        return Verdict(kind=Kind.ASK_AGAIN, ask_at=effect.settled_at, why="too early to believe it")
    if _believable(effect, answer):
        return Verdict(kind=Kind.NOT_EXECUTED)
    again = now + effect.terms.timeout + effect.terms.settle
    return Verdict(kind=Kind.ASK_AGAIN, ask_at=again, why="heard once; the clock may have jumped")


def _believable(effect: s.Effect, answer: Answered) -> bool:
    """Whether the asker's own clock agrees that nothing can be under way any more.

    Once is enough where the send was on the same clock and lies back by all the declared times; else the same
    must have been heard before, after `settled_at`, and timeout + settle ago by one clock.
    """
    terms, sender = effect.terms, effect.last_send.sender
    if sender.boot == answer.boot and answer.uptime - sender.uptime >= terms.settles_after:
        return True
    return any(
        ask.failure is None
        and not ours(effect, ask.matches)
        and ask.account == effect.account
        and ask.at >= effect.settled_at
        and ask.boot == answer.boot
        and answer.uptime - ask.uptime >= terms.timeout + terms.settle
        for ask in effect.asks
    )


def _patient(effect: s.Effect, now: datetime, why: str) -> Verdict:
    """Ask again with back-off until the tool's patience is over."""
    if now >= patience_ends(effect):
        return Verdict(kind=Kind.UNKNOWN, why=why)
    asked = sum(ask.seq > effect.last_send.seq for ask in effect.asks)
    return Verdict(kind=Kind.ASK_AGAIN, ask_at=min(now + back_off(asked), patience_ends(effect)), why=why)


def patience_ends(effect: s.Effect) -> datetime:
    """When the worker stops asking and a person has to."""
    since = effect.unknown_since or effect.last_send.at
    return max(since + effect.terms.patience, effect.settled_at)


def may_resend(effect: s.Effect, now: datetime, *, senders_gone: bool = False) -> bool:
    """Whether an effect that did not happen may be sent again by itself, under the same key.

    A process may still stand between its last check and the socket. So only where the other side honours the
    key and the whole call ends within its retention, or refuses a call that comes too late, or where every
    earlier sender was seen to be gone.
    """
    if effect.terms.guarded or senders_gone:
        return True
    retention = effect.terms.retention
    if retention is None:
        return False
    margin = retention * RETENTION_MARGIN
    if retention >= 2 * LEAST_MARGIN:
        margin = max(margin, LEAST_MARGIN)
    whole = effect.terms.dispatch_window + effect.terms.timeout
    return now + whole <= effect.sends[0].at + retention - margin


class Action(StrEnum):
    """The next safe action, as a code: the page has the words."""

    RUN = "run"  #: a worker goes on
    ASK = "ask"  #: a worker asks the outside what became of an effect
    RESEND = (
        "resend"  #: a worker sends again under the same key, where the outside cannot be asked and honours it
    )
    REVIEW = "review"  #: an approver decides on the plan version
    RENEW = "renew"  #: the request expired; a person asks for a new one
    RECONCILE = "reconcile"  #: an operator settles an effect
    FIND = "find"  #: an operator finds which is true: the record of a settled effect, or evidence against it
    DECIDE = "decide"  #: an operator takes one of the decisions that the reasons allow
    SETTLE = "settle"  #: in flight: the holder is calling now
    WAIT = "wait"  #: a timer, a signal or a child run ends it
    UNDO = "undo"  #: a worker undoes what stands
    FINISH_CANCEL = "finish_cancel"
    NONE = "none"  #: the run is over


class SafeAction(msgspec.Struct, frozen=True, kw_only=True):
    """The one next safe action: what, who may, about what, since or until when, and what is not safe now."""

    action: Action
    right: str | None
    rule: str
    effect: int | None = None
    plan: int | None = None
    reason: str | None = None
    until: datetime | None = None
    waits_for: str = ""  #: the step that waits
    decisions: tuple[Decision, ...] = ()
    not_safe: tuple[str, ...] = ()


#: Whatever the reasons: what is in flight or unknown is settled first.
NOT_WHILE_OPEN = frozenset({Decision.RETRY, Decision.REPLAN, Decision.RESTART})
UNSAFE_WHILE_OPEN = ("approve", "send_again", "restart", "end")


def next_safe_action(state: s.RunState) -> SafeAction:
    """From the state alone; the same answer however often it is asked."""
    match state.state:
        case s.State.SUCCEEDED | s.State.CANCELLED | s.State.RESTARTED:
            return _disputed(state) or SafeAction(action=Action.NONE, right=None, rule="NSA-0")
        case s.State.NEEDS_HUMAN:
            return _for_human(state)
        case s.State.UNKNOWN:
            return _for_unknown(state)
        case s.State.WAITING_APPROVAL:
            return _for_approver(state)
        case s.State.CANCELLING:
            return SafeAction(action=Action.FINISH_CANCEL, right=None, rule="NSA-7", until=state.retry_at)
        case s.State.WAITING:
            return _for_wait(state)
        case s.State.COMPENSATING:
            return _in_flight(state) or SafeAction(
                action=Action.UNDO, right=None, rule="NSA-10", until=state.retry_at
            )
        case _:
            return _for_worker(state)


def _for_worker(state: s.RunState) -> SafeAction:
    if calling := _in_flight(state):
        return calling
    return SafeAction(action=Action.RUN, right=None, rule="NSA-1", until=state.retry_at)


def _in_flight(state: s.RunState) -> SafeAction | None:
    """A send without a receipt: its holder is calling now, or is gone and its outcome becomes unknown."""
    effect = next((x for x in state.open_effects if x.status is s.EffectStatus.IN_FLIGHT), None)
    if effect is None:
        return None
    end = effect.last_send.at + effect.terms.dispatch_window + effect.terms.timeout
    return SafeAction(
        action=Action.SETTLE, right=None, rule="NSA-2", effect=effect.number, until=end,
        not_safe=UNSAFE_WHILE_OPEN,
    )  # fmt: skip


def _for_wait(state: s.RunState) -> SafeAction:
    if state.cancel_requested and not state.open_children:
        return SafeAction(action=Action.FINISH_CANCEL, right=None, rule="NSA-7")
    wait = state.wait
    if wait is None or came(state, wait, state.at):
        return SafeAction(action=Action.RUN, right=None, rule="NSA-1")
    return SafeAction(action=Action.WAIT, right=None, rule="NSA-9", until=wait.until, waits_for=wait.step)


def came(state: s.RunState, wait: Wait, now: datetime) -> bool:
    """Whether what a step waits for is there."""
    match wait.kind:
        case WaitKind.TIMER:
            return wait.until is None or now >= wait.until
        case WaitKind.SIGNAL:
            return any(x.name == wait.signal and not x.taken_by for x in state.signals)
        case WaitKind.CHILDREN:
            return not any(c.open for c in state.children.values() if c.step == wait.step)


def decisions_of(state: s.RunState) -> tuple[Decision, ...]:
    """Exactly what a person may decide on the run as it stands."""
    allowed = allowed_decisions(
        state.reasons, open_effects=bool(state.open_effects), open_children=bool(state.open_children),
        undoing=state.undoing, contradicted=bool(state.contradicted),
    )  # fmt: skip
    if not state.undoing and (state.outdated or (state.plan and state.plan.voided_seq is not None)):
        allowed = tuple(
            d for d in allowed if d is not Decision.RETRY
        )  # of a plan that ended nothing is retried
    return tuple(d for d in allowed if d not in NOT_WHILE_OPEN) if state.open_effects else allowed


def right_to(decision: Decision) -> str:
    """The codename of the right that a person needs for a decision on a stopped run."""
    match decision:
        case Decision.CANCEL | Decision.END:
            return "cancel_runs"
        case Decision.RESTART:
            return "restart_runs"
        case Decision.RECONCILE | Decision.SETTLE:
            return "reconcile_effects"
        case Decision.ATTEST:
            return "attest_effects"
        case Decision.LEND:
            return "start_runs"
        case _:
            return "operate_runs"


def _for_unknown(state: s.RunState) -> SafeAction:
    if calling := _in_flight(state):
        return calling
    effect = state.open_effects[0]
    return SafeAction(
        action=Action.ASK if effect.terms.queryable else Action.RESEND, right=None, rule="NSA-3",
        effect=effect.number, until=effect.next_ask_at, not_safe=UNSAFE_WHILE_OPEN,
    )  # fmt: skip


def _for_approver(state: s.RunState) -> SafeAction:
    request = state.request
    plan = state.plan.version if state.plan else None
    if request is None or request.status is not s.RequestStatus.PENDING:
        return SafeAction(action=Action.RENEW, right="operate_runs", rule="NSA-5", plan=plan)
    return SafeAction(
        action=Action.REVIEW, right=request.right, rule="NSA-6", plan=plan, until=request.expires_at,
        not_safe=("send",),
    )  # fmt: skip


def _disputed(state: s.RunState) -> SafeAction | None:
    """Evidence contradicts a settled effect: a person finds which is true, before a run goes on and after it ended."""
    if not any(reason.code == "effect_conflict" for reason in state.reasons) or not state.contradicted:
        return None
    return SafeAction(
        action=Action.FIND, right="reconcile_effects", rule="NSA-11", effect=state.contradicted[0].number,
        reason="effect_conflict", not_safe=("send_again",),
    )  # fmt: skip


def _for_human(state: s.RunState) -> SafeAction:
    if state.cancel_requested and not state.undoing and not (state.open_effects or state.open_children):
        return SafeAction(action=Action.FINISH_CANCEL, right=None, rule="NSA-7")
    reason = first_reason(state.reasons)
    decisions = decisions_of(state)
    if state.open_effects:
        return SafeAction(
            action=Action.RECONCILE, right="reconcile_effects", rule="NSA-4", effect=state.open_effects[0].number,
            reason=reason.code, decisions=decisions, not_safe=UNSAFE_WHILE_OPEN,
        )  # fmt: skip
    if disputed := _disputed(state):
        return msgspec.structs.replace(disputed, reason=reason.code, decisions=decisions)
    right = right_to(decisions[0]) if decisions else "operate_runs"
    return SafeAction(
        action=Action.DECIDE, right=right, rule="NSA-8", reason=reason.code, decisions=decisions
    )
