"""Evidence: what a call or a query brought back, and what follows from it."""

from __future__ import annotations

from datetime import datetime

from runs.machine import events as e
from runs.machine import safety
from runs.machine import state as s
from runs.machine.decide.common import Events, human
from runs.machine.decide.findings import contradicted_by
from runs.machine.decide.sends import blind_stops, refusal_code
from runs.machine.transitions import Refused, allows


def executed(
    state: s.RunState,
    effect: int,
    *,
    reference: str,
    evidence: str,
    problem: str | None,
    versions: dict[str, str],
    promises: tuple[e.Promised, ...] = (),
    late: bool = False,
) -> Events:
    """The call was answered: done. `problem` is the postcondition that does not hold, `promises` what is owed with it.

    `late`: the one who called does not hold the run any more.
    """
    receipt = e.ReceiptStored(
        effect=effect, executed=True, reference=reference, evidence=e.raw(evidence), source="call",
        failed=problem, versions=versions, promises=promises,
    )  # fmt: skip
    return _receipt(state, receipt, _failed_postcondition(effect, problem), late=late)


def refused_call(state: s.RunState, effect: int, *, detail: str, evidence: str, late: bool = False) -> Events:
    """The call was answered: definitely not done. Trying it again is a new round, by a person's decision.

    `late`: as in `executed`.
    """
    receipt = e.ReceiptStored(
        effect=effect, executed=False, reference="", evidence=e.raw(evidence), source="call", detail=detail
    )
    refused = human(refusal_code(state), subject=f"E-{effect}", evidence=detail)
    return _receipt(state, receipt, refused, late=late)


def _failed_postcondition(effect: int, problem: str | None) -> Events:
    return human("postcondition_failed", subject=f"E-{effect}", evidence=problem) if problem else ()


def _receipt(state: s.RunState, receipt: e.ReceiptStored, then: Events, *, late: bool) -> Events:
    """Evidence moves the run where the effect is open and the table lets it; it is kept in every other case.

    What an older holder heard moves nothing: a later send may be under way, and says more.
    """
    effect = state.effects[receipt.effect]
    if not late and effect.status in s.OPEN_EFFECT and allows(state.state, e.ReceiptStored):
        return receipt, *then
    contradicts = contradicted_by(effect, receipt.executed, receipt.reference)
    kept = e.EvidenceKept(
        effect=receipt.effect, executed=receipt.executed, reference=receipt.reference, evidence=receipt.evidence,
        source=receipt.source, contradicts=contradicts, raises=contradicts,
    )  # fmt: skip
    return (kept, *_contradicted(state, receipt, contradicts))


def _contradicted(state: s.RunState, receipt: e.ReceiptStored, contradicts: bool) -> Events:
    if not contradicts or state.state in s.TERMINAL:
        return ()
    return human(
        "effect_conflict", subject=f"E-{receipt.effect}", evidence=receipt.reference or receipt.detail
    )


def ambiguous(state: s.RunState, effect: int, *, detail: str, evidence: str, late: bool = False) -> Events:
    """The call ended without a clear answer: the outcome is unknown. `late`: as in `executed`."""
    in_flight = state.effects[effect].status is s.EffectStatus.IN_FLIGHT
    if not late and in_flight and allows(state.state, e.OutcomeUnknown):
        unknown = e.OutcomeUnknown(effect=effect, detail=detail, evidence=e.raw(evidence))
        return (unknown, *blind_stops(state.effects[effect]))
    return (
        e.EvidenceKept(
            effect=effect, executed=None, reference=detail, evidence=e.raw(evidence), source="call",
            contradicts=False,
        ),
    )  # fmt: skip


def _queried(
    effect: s.Effect, answer: safety.Answered, evidence: str, next_at: datetime | None
) -> e.EffectQueried:
    return e.EffectQueried(
        effect=effect.number, failure=answer.failure, matches=answer.matches, account=answer.account,
        evidence=e.raw(evidence), boot=answer.boot, uptime=answer.uptime, next_at=next_at,
    )  # fmt: skip


def asked_by_person(state: s.RunState, effect: int, answer: safety.Answered, *, evidence: str) -> Events:
    """A person asked: the answer is evidence, the conclusion is the person's."""
    if not allows(state.state, e.EffectQueried) or state.effects[effect].status is not s.EffectStatus.UNKNOWN:
        raise Refused(state.state, "EffectQueried")
    return (_queried(state.effects[effect], answer, evidence, state.effects[effect].next_ask_at),)


def _heard_of(effect: s.Effect) -> s.Late | None:
    """Evidence of an older holder that the effect was done: then "not found" alone is no ground to send again."""
    return next((came for came in effect.late if came.executed), None)


def asked(
    state: s.RunState,
    number: int,
    answer: safety.Answered,
    *,
    evidence: str,
    problem: str | None,
    now: datetime,
    senders_gone: bool = False,
    promises: tuple[e.Promised, ...] = (),
) -> Events:
    """A worker asked: the answer, and what follows from it by the table. `problem` as in `executed`."""
    effect = state.effects[number]
    says = safety.verdict(effect, answer, now)
    queried = _queried(effect, answer, evidence, says.ask_at)
    seq = state.seq + 1
    match says.kind:
        case safety.Kind.ASK_AGAIN:
            return (queried,)
        case safety.Kind.RECEIPT if says.match:
            receipt = e.ReceiptStored(
                effect=number, executed=True, reference=says.match.reference, evidence=e.raw(evidence),
                source="query", asked=seq, failed=problem, promises=promises,
            )  # fmt: skip
            return queried, receipt, *_failed_postcondition(number, problem)
        case safety.Kind.NOT_EXECUTED if heard := _heard_of(effect):
            why = f"the outside finds nothing, and evidence in event {heard.seq} says that it was done"
            return queried, *human("effect_conflict", subject=f"E-{number}", evidence=why)
        case safety.Kind.NOT_EXECUTED if safety.may_resend(effect, now, senders_gone=senders_gone):
            return queried, e.EffectReconciled(
                effect=number, happened=False, asked=seq, reference="", note=""
            )
        case safety.Kind.CONFLICT:
            return queried, *human("effect_conflict", subject=f"E-{number}", evidence=says.why)
        case safety.Kind.NOT_EXECUTED:
            why = "it did not happen, and sending it again is not safe without a person"
            return queried, *human("effect_unknown", subject=f"E-{number}", evidence=why)
        case _:
            return queried, *human("effect_unknown", subject=f"E-{number}", evidence=says.why)
