"""What intents, sends, receipts and what people say of effects do to the parts of a state. Used by `evolve`."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from runs.machine import events as e
from runs.machine import evolving, obligations, settling
from runs.machine import state as s
from runs.machine.back_off import back_off
from runs.machine.draft import Draft, Handlers

HANDLERS = Handlers()


@HANDLERS.on(e.EffectIntended)
def _intended(draft: Draft, event: e.EffectIntended, recorded: e.Recorded) -> None:
    step = _step_named(draft.plans[-1].plan.steps, event.step, len(draft.done))
    send = s.Send(seq=recorded.seq, at=recorded.at, sender=event.sender)
    draft.blocked = None
    draft.effects[event.effect] = s.Effect(
        number=event.effect, step=event.step, tool=event.tool, system=event.system, account=event.account,
        operation_id=event.operation_id, key=event.key, round=event.round, arguments=e.text_of(event.arguments),
        arguments_digest=event.arguments_digest, plan_version=event.plan_version,
        title=event.title or (step.title if step else event.step),
        cost=event.cost if event.bound or step is None else step.cost, bound=event.bound,
        undoes=step.undoes if step else None,
        terms=event.terms, status=s.EffectStatus.IN_FLIGHT,
        intent_seq=recorded.seq, intent_at=recorded.at, sends=(send,), grant=event.grant,
    )  # fmt: skip


def _step_named(steps: tuple[s.PlanStep, ...], name: str, likely: int) -> s.PlanStep | None:
    """The step of this name, looked for first where it stands if the steps are done in their order."""
    if likely < len(steps) and steps[likely].name == name:
        return steps[likely]
    return next((x for x in steps if x.name == name), None)


def _set_effect(draft: Draft, number: int, **parts: Any) -> s.Effect:
    effect = replace(draft.effects[number], **parts)
    draft.effects[number] = effect
    return effect


@HANDLERS.on(e.EffectSent)
def _sent(draft: Draft, event: e.EffectSent, recorded: e.Recorded) -> None:
    send = s.Send(seq=recorded.seq, at=recorded.at, sender=event.sender)
    draft.blocked = None
    _set_effect(
        draft, event.effect, status=s.EffectStatus.IN_FLIGHT, receipt=None, unknown_since=None, next_ask_at=None,
        dispatched_seq=None, sends=(*draft.effects[event.effect].sends, send), grant=event.grant,
    )  # fmt: skip


@HANDLERS.on(e.EffectDispatched)
def _dispatched(draft: Draft, event: e.EffectDispatched, recorded: e.Recorded) -> None:
    _set_effect(draft, event.effect, dispatched_seq=recorded.seq)


@HANDLERS.on(e.EffectUnsent)
def _unsent(draft: Draft, event: e.EffectUnsent, recorded: e.Recorded) -> None:
    receipt = s.Receipt(
        seq=recorded.seq, at=recorded.at, executed=False, reference="", source="mark", detail="", failed=None
    )
    _settle(draft, event.effect, receipt, recorded)


@HANDLERS.on(e.EffectAnswered)
def _answered(draft: Draft, event: e.EffectAnswered, recorded: e.Recorded) -> None:
    _step_done(draft, event.step, event.effect, recorded.seq)


@HANDLERS.on(e.StepAnswered)
def _step_answered(draft: Draft, event: e.StepAnswered, recorded: e.Recorded) -> None:
    _step_done(draft, event.step, 0, recorded.seq)


@HANDLERS.on(e.EffectAttested)
def _attested(draft: Draft, event: e.EffectAttested, recorded: e.Recorded) -> None:
    said = s.Attestation(
        person=event.person, name=recorded.actor.name, happened=event.happened, reference=event.reference,
        how=event.how, seq=recorded.seq, at=recorded.at,
    )  # fmt: skip
    _set_effect(draft, event.effect, attestations=(*draft.effects[event.effect].attestations, said))


@HANDLERS.on(e.AttestationAccepted)
def _accepted(draft: Draft, event: e.AttestationAccepted, recorded: e.Recorded) -> None:
    receipt = s.Receipt(
        seq=recorded.seq, at=recorded.at, executed=event.happened, reference=event.reference,
        source="attestation", detail="", failed=None, by_person=True,
    )  # fmt: skip
    _settle(draft, event.effect, receipt, recorded)


@HANDLERS.on(e.ContradictionSettled)
def _contradiction_settled(draft: Draft, event: e.ContradictionSettled, recorded: e.Recorded) -> None:
    settling.settled(draft, event, recorded)
    effect = draft.effects[event.effect]
    if event.finding == s.Finding.HAPPENED:
        if step := settling.step_of(draft, effect):
            _step_done(draft, step, effect.number, recorded.seq)
        _open_promises(draft, effect, recorded)
        evolving.undone(draft, draft.effects[event.effect])


@HANDLERS.on(e.OutcomeUnknown)
def _unknown(draft: Draft, event: e.OutcomeUnknown, recorded: e.Recorded) -> None:
    effect = draft.effects[event.effect]
    first = recorded.at if effect.terms.queryable else recorded.at + back_off(len(effect.sends) - 1)
    _set_effect(
        draft, event.effect, status=s.EffectStatus.UNKNOWN, unknown_since=effect.unknown_since or recorded.at,
        unknown_detail=event.detail, next_ask_at=first,
    )  # fmt: skip


@HANDLERS.on(e.EffectQueried)
def _queried(draft: Draft, event: e.EffectQueried, recorded: e.Recorded) -> None:
    ask = s.Ask(
        seq=recorded.seq, at=recorded.at, by=recorded.actor, failure=event.failure, matches=event.matches,
        account=event.account, boot=event.boot, uptime=event.uptime,
    )  # fmt: skip
    asks = draft.effects[event.effect].asks
    _set_effect(draft, event.effect, asks=(*asks, ask), next_ask_at=event.next_at)


@HANDLERS.on(e.ReceiptStored)
def _receipt(draft: Draft, event: e.ReceiptStored, recorded: e.Recorded) -> None:
    receipt = s.Receipt(
        seq=recorded.seq, at=recorded.at, executed=event.executed, reference=event.reference,
        source=event.source, detail=event.detail, failed=event.failed,
    )  # fmt: skip
    draft.produced.update(event.versions)
    _settle(draft, event.effect, receipt, recorded)
    obligations.promised(draft, event.effect, event.promises, recorded)


@HANDLERS.on(e.EffectReconciled)
def _reconciled(draft: Draft, event: e.EffectReconciled, recorded: e.Recorded) -> None:
    receipt = s.Receipt(
        seq=recorded.seq, at=recorded.at, executed=event.happened, reference=event.reference,
        source="query", detail=event.note, failed=None, by_person=recorded.actor.kind is e.ActorKind.PERSON,
    )  # fmt: skip
    _settle(draft, event.effect, receipt, recorded)
    obligations.promised(draft, event.effect, event.promises, recorded)


def _settle(draft: Draft, number: int, receipt: s.Receipt, recorded: e.Recorded) -> None:
    """The effect is certain: confirmed, or definitely not executed."""
    status = s.EffectStatus.CONFIRMED if receipt.executed else s.EffectStatus.NOT_EXECUTED
    effect = _set_effect(draft, number, status=status, receipt=receipt, next_ask_at=None, conflict="")
    if receipt.executed:
        _step_done(draft, effect.step, number, recorded.seq)
        _open_promises(draft, effect, recorded)
        evolving.undone(draft, effect)


def _step_done(draft: Draft, step: str, effect: int, seq: int) -> None:
    """The step is done; what it discharges is discharged."""
    draft.done[step], draft.blocked = effect, None
    if draft.obligations:
        draft.obligations = tuple(
            replace(o, discharged_seq=seq) if o.open and o.by == step else o for o in draft.obligations
        )


def _open_promises(draft: Draft, effect: s.Effect, recorded: e.Recorded) -> None:
    """What the plan promised after this step opens, unless it is owed already."""
    latest = draft.plans[-1]  # nearly always the one; a search costs as much as all the rest of a receipt
    if latest.version != effect.plan_version:
        latest = next(p for p in reversed(draft.plans) if p.version == effect.plan_version)
    plan = latest.plan
    if not plan.promises:
        return
    owed = {(o.text, o.by) for o in draft.obligations if o.open}
    for promise in plan.promises:
        if promise.after == effect.step and (promise.text, promise.by) not in owed:
            draft.obligations += (_opened(len(draft.obligations) + 1, promise, recorded),)


def _opened(number: int, promise: s.PlanPromise, recorded: e.Recorded) -> s.Obligation:
    return s.Obligation(
        number=number, text=promise.text, by=promise.by, opened_seq=recorded.seq, opened_at=recorded.at,
        due_at=recorded.at + promise.due if promise.due else None,
    )  # fmt: skip


@HANDLERS.on(e.ArtifactKept)
def _artifact(draft: Draft, event: e.ArtifactKept, recorded: e.Recorded) -> None:
    number = len(draft.artifacts) + 1
    draft.artifacts[number] = s.Artifact(
        number=number, hash=event.artifact, name=event.name, kind=event.kind, media_type=event.media_type,
        size=event.size, about=event.about, seq=recorded.seq, at=recorded.at,
    )  # fmt: skip
    if event.kind == "result":
        draft.reads += 1
