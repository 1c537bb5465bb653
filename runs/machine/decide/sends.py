"""Sends: the next one, another one of the same intent, and what a dead sender left behind."""

from __future__ import annotations

import itertools
from datetime import datetime

from runs.machine import events as e
from runs.machine import late, safety
from runs.machine import state as s
from runs.machine.canonical import canonical, idempotency_key, parse, round_suffix
from runs.machine.decide.common import REPLANS_IN_A_ROW, Events, human
from runs.machine.transitions import Refused

#: How it is known that an effect did not happen and that its key is of no more use: doing it again is a new round.
NEW_ROUND = ("call", "finding")
#: An effect that can only be sent again gets this many sends before patience counts: a fleet may have been away.
SENDS_AT_LEAST = 3


def found_open(state: s.RunState) -> Events:
    """What a new holder knows of effects that an earlier one left in flight: nothing."""
    found: Events = ()
    for effect in state.open_effects:
        if effect.status is s.EffectStatus.IN_FLIGHT:
            found += _left_open(effect)
    return found


def _left_open(effect: s.Effect) -> Events:
    """From outside "not yet called" and "called, no receipt" look the same, unless the tool marks its dispatch."""
    if effect.terms.blind and effect.dispatched_seq is None:
        return (e.EffectUnsent(effect=effect.number),)
    unknown = e.OutcomeUnknown(effect=effect.number, detail="its holder is gone and stored no receipt")
    return (unknown, *blind_stops(effect))


def blind_stops(effect: s.Effect) -> Events:
    """Nobody can be asked about a blind effect, and sending again may do it twice: a person, at once."""
    if not effect.terms.blind:
        return ()
    why = "it can be neither asked about nor sent again"
    return human("effect_unknown", subject=f"E-{effect.number}", evidence=why)


def next_send(
    state: s.RunState,
    *,
    terms: e.Terms,
    account: str,
    sender: e.Sender,
    now: datetime,
    senders_gone: bool = False,
    bindings: late.Bindings | None = None,
) -> Events:
    """The send of the next step, or what stands in its way. Raises Refused where no step is left.

    `bindings` holds what came for the arguments that the step leaves open; nothing is sent without it, nor outside the
    bounds that people saw.
    """
    ready = state.state in s.SENDING and not state.open_effects
    waits = not state.remaining or state.remaining[0].wait is not None
    if not ready or waits or state.plan is None or state.approval_over or state.outdated:
        raise Refused(state.state, "EffectIntended")
    if state.identity.deadline and now > state.identity.deadline and not state.undoing:
        return human("deadline_passed", evidence=state.identity.deadline.isoformat())
    step = state.remaining[0]
    if gone := _stands_no_more(state, step):
        return (e.PlanVoided(version=state.plan.version, causes=(gone,)),)
    if not state.covers_round(step):
        return ()  # nobody approved it in this round: revalidation asks for that
    if step.late:
        if bindings is None or (bindings.plan_version, bindings.step.name) != (state.plan.version, step.name):
            return ()  # they were fetched for another step: the plan changed meanwhile
        if refused := bindings.refused or late.outside(step, bindings.bound):
            return not_bound(state, refused)
        step = bindings.step
    round_ = state.round_of(step)
    operation_id = round_suffix(step.operation_id, round_)
    if known := state.by_operation(step.system, operation_id):
        safe = safety.may_resend(known, now, senders_gone=senders_gone)
        return _send_again(state, known, step, sender, safe)
    if stands := state.inherited_by(step.system, operation_id):
        return _inherited(stands, step, state.plan.version)
    left = state.left((step,))
    if left is not None and left < 0:
        return human("budget_exhausted", subject=step.name, evidence=str(left))
    intent = e.EffectIntended(
        effect=len(state.effects) + 1, step=step.name, tool=step.tool, system=step.system, account=account,
        operation_id=operation_id, key=key_of(state, step), round=round_, arguments=e.raw(step.arguments),
        arguments_digest=step.arguments_digest, plan_version=state.plan.version, terms=terms, sender=sender,
        bound=bindings.bound if bindings else (), title=step.title if bindings else "",
        cost=step.cost if bindings else None,
        grant=state.grant,
    )  # fmt: skip
    return _after_lost_history(intent) if state.history_lost else (intent,)


def not_bound(state: s.RunState, refused: e.Cause) -> Events:
    """A value did not come, or not within its bounds: the planner makes another plan, a few times; then a person."""
    assert state.plan is not None
    before = itertools.takewhile(_ended_so, reversed(state.plans[:-1]))
    if sum(1 for _ in before) + 1 >= REPLANS_IN_A_ROW:
        came = f"{refused.was} -> {refused.now or 'nothing'}"
        return human("out_of_bounds", subject=refused.subject, evidence=came)
    return (e.PlanVoided(version=state.plan.version, causes=(refused,)),)


def _ended_so(plan: s.PlanVersion) -> bool:
    return any(x.what in (late.CAUSE, late.BROKEN) for x in plan.voided)


def key_of(state: s.RunState, step: s.PlanStep) -> str:
    """The idempotency key under which the step is sent next: the one that is shown to people beforehand.

    Empty while arguments of it are open: there is none before they are bound.
    """
    if step.late:
        return ""
    round_ = state.round_of(step)
    operation = f"{step.system} {round_suffix(step.operation_id, round_)}"
    return state.keys.get(operation) or idempotency_key(
        run_id=state.identity.run, step=step.name, arguments=_bound_arguments(step), round_=round_
    )


def _stands_no_more(state: s.RunState, step: s.PlanStep) -> e.Cause | None:
    """Why what the step would undo is not there to be undone: people found meanwhile that it did not happen."""
    target = step.undoes
    if target is None:
        return None
    if target.run == state.identity.run:
        stands, name = state.effects[target.effect].status is s.EffectStatus.CONFIRMED, f"E-{target.effect}"
    else:
        stands = any((x.run, x.effect) == (target.run, target.effect) for x in state.inherited)
        name = f"{target.run} E-{target.effect}"
    return None if stands else e.Cause(what="stands_no_more", subject=name, was="", now="")


def _after_lost_history(intent: e.EffectIntended) -> Events:
    """It may have been sent by events that are lost: asked about before its first call, or left to a person."""
    if not intent.terms.queryable:
        return human(
            "history_lost", subject=intent.step, evidence=f"{intent.operation_id} cannot be asked about"
        )
    why = "the database's history changed; it may have been sent before"
    return intent, e.OutcomeUnknown(effect=intent.effect, detail=why)


def _sent_elsewhere(state: s.RunState, effect: s.Effect) -> bool:
    """Whether it may have been sent again after the checkpoint that the run was taken in from."""
    taken = state.taken_in
    return state.history_lost and taken is not None and effect.last_send.seq <= taken.seq


def _after_checkpoint(effect: s.Effect, sent: e.EffectSent) -> Events:
    """As after a lost history: asked about before it is called again, or left to a person."""
    if not effect.terms.queryable:
        evidence = f"{effect.operation_id} cannot be asked about"
        return human("history_lost", subject=f"E-{effect.number}", evidence=evidence)
    why = "the run was taken in from a checkpoint; it may have been sent since then"
    return sent, e.OutcomeUnknown(effect=effect.number, detail=why)


def _bound_arguments(step: s.PlanStep) -> str:
    """The canonical arguments that a key is of: without those that the tool calls volatile."""
    if not step.volatile:
        return step.arguments
    return canonical({k: v for k, v in parse(step.arguments).items() if k not in step.volatile})


def _inherited(stands: e.Inherited, step: s.PlanStep, plan_version: int) -> Events:
    """The lineage did it before: answered from that receipt; with other arguments a person has to look at both."""
    if stands.arguments_digest != step.arguments_digest:
        both = f"{e.text_of(stands.arguments)} in {stands.run} -> {step.arguments}"
        return human("effect_conflict", subject=step.name, evidence=both)
    return (
        e.StepAnswered(
            step=step.name, run=stands.run, effect=stands.effect, reference=stands.reference,
            plan_version=plan_version,
        ),
    )  # fmt: skip


def _send_again(
    state: s.RunState, effect: s.Effect, step: s.PlanStep, sender: e.Sender, safe: bool
) -> Events:
    """The operation id is known to this run: answered from its receipt, or sent again under the same key."""
    name = f"E-{effect.number}"
    if effect.arguments_digest != step.arguments_digest:
        # What did not happen stands in nobody's way: with other arguments it is a new round, by a person's decision.
        both = f"{effect.arguments} -> {step.arguments}"
        if effect.status not in s.HELD:
            return human(refusal_code(state), subject=name, evidence=both)
        return human("effect_conflict", subject=step.name, evidence=f"{name}: {both}")
    if effect.status is s.EffectStatus.CONFIRMED:
        plan = state.plan.version if state.plan else 0
        return (e.EffectAnswered(step=step.name, effect=effect.number, plan_version=plan),)
    receipt = effect.receipt
    if effect.status is s.EffectStatus.COMPENSATED:
        return human(
            refusal_code(state), subject=name, evidence="it was undone; doing it again is a new round"
        )
    if receipt is None or receipt.source in NEW_ROUND:
        return human(refusal_code(state), subject=name, evidence=receipt.detail if receipt else "")
    if receipt.by_person or receipt.source == "mark" or safe:
        sent = e.EffectSent(effect=effect.number, sender=sender, grant=state.grant)
        return _after_checkpoint(effect, sent) if _sent_elsewhere(state, effect) else (sent,)
    unknown = e.OutcomeUnknown(effect=effect.number, detail="its key is no longer honoured")
    return unknown, *human("effect_unknown", subject=name, evidence="its key is no longer honoured")


def refusal_code(state: s.RunState) -> str:
    """The reason where the other system refused: what a person may decide differs while a run is being undone."""
    return "compensation_failed" if state.undoing else "tool_failed"


def resend_unknown(state: s.RunState, number: int, *, sender: e.Sender, now: datetime) -> Events:
    """An unknown effect that cannot be asked about but whose key is honoured: sent again under it, or a person."""
    effect = state.effects[number]
    if why := _not_again(state, now):
        return human("effect_unknown", subject=f"E-{number}", evidence=why)
    tired = len(effect.sends) >= SENDS_AT_LEAST and now >= safety.patience_ends(effect)
    if effect.terms.blind or tired or not safety.may_resend(effect, now):
        why = effect.unknown_detail or "no receipt came"
        return human("effect_unknown", subject=f"E-{number}", evidence=why)
    return (e.EffectSent(effect=number, sender=sender, grant=state.grant),)


def _not_again(state: s.RunState, now: datetime) -> str:
    """What keeps an effect from being sent again that nothing would be sent for the first time under either."""
    if state.outdated:
        return _changed_since(state)
    if state.undoing:
        return ""
    if state.cancel_requested:
        return "the end of the run was asked for: it is not sent again"
    deadline = state.identity.deadline
    return (
        f"the deadline {deadline.isoformat()} has passed: it is not sent again"
        if deadline and now > deadline
        else ""
    )


def _changed_since(state: s.RunState) -> str:
    if state.plan and state.plan.plan.goal_version != state.goal.version:
        return f"the goal was revised to v{state.goal.version}: it is not sent again for the one before"
    return "the constraints changed: it is not sent again under those before"


def dispatched(state: s.RunState, number: int) -> Events:
    """The mark just before a blind tool's call; nothing for the others."""
    return (e.EffectDispatched(effect=number),) if state.effects[number].terms.blind else ()
