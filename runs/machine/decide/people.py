"""What people decide about a run: what became of an effect, how a stopped run goes on, that it ends."""

from __future__ import annotations

from datetime import datetime

from runs.machine import events as e
from runs.machine import late, safety
from runs.machine import state as s
from runs.machine.canonical import round_suffix
from runs.machine.decide.common import Events, human
from runs.machine.decide.sends import NEW_ROUND, found_open
from runs.machine.decide.undoing import begin_cancel, end, finish_cancel
from runs.machine.decide.waiting import start_again
from runs.machine.transitions import Decision, Refused, allows


class ConclusionRefused(Exception):
    """This conclusion about an effect cannot be recorded; `condition` says which rule fails, nothing
    changed.
    """

    def __init__(self, condition: str) -> None:
        self.condition = condition
        super().__init__(condition)


def conclusion_conditions(effect: s.Effect, ask: s.Ask | None, now: datetime) -> dict[str, str]:
    """For each conclusion a person may draw from an answer: empty where it may, else the condition that
    fails.
    """
    if ask is None or ask.seq < effect.last_send.seq:
        return {"happened": "not_asked", "not_happened": "not_asked"}
    if any(later.seq > ask.seq and later.failure is None for later in effect.asks):
        return {"happened": "newer_answer", "not_happened": "newer_answer"}
    if ask.failure is not None:
        return {"happened": "no_answer", "not_happened": "no_answer"}
    return {"happened": _may_have_happened(effect, ask), "not_happened": _may_not_have(effect, ask)}


def _may_have_happened(effect: s.Effect, ask: s.Ask) -> str:
    matches = safety.ours(effect, ask.matches)
    if len(matches) != 1:
        return "no_match" if not matches else "several_matches"
    if safety.difference(effect, matches[0]):
        return "differs"
    return "" if matches[0].final else "pending"


def _may_not_have(effect: s.Effect, ask: s.Ask) -> str:
    if safety.ours(effect, ask.matches):
        return "match"
    if ask.account != effect.account:
        return "other_account"
    return "" if ask.at >= effect.settled_at else "too_early"


def concluded(
    state: s.RunState,
    number: int,
    *,
    happened: bool,
    asked_seq: int,
    note: str,
    now: datetime,
    promises: tuple[e.Promised, ...] = (),
) -> Events:
    """A person's conclusion from the outside's answer at `asked_seq`. Raises ConclusionRefused, Refused.

    `promises` is what is owed with the effect, as that answer says.
    """
    effect = state.effects[number]
    if effect.status is not s.EffectStatus.UNKNOWN or not allows(state.state, e.EffectReconciled):
        raise Refused(state.state, "EffectReconciled")
    ask = next((a for a in effect.asks if a.seq == asked_seq), None)
    latest = next((a for a in reversed(effect.asks) if a.failure is None), ask)
    what = "happened" if happened else "not_happened"
    # An answer that a later one contradicts is no ground: somebody else may have asked since this page was read.
    condition = next(filter(None, (conclusion_conditions(effect, a, now)[what] for a in (ask, latest))), "")
    if condition or ask is None:
        raise ConclusionRefused(condition)
    reference = safety.ours(effect, ask.matches)[0].reference if happened else ""
    return (
        e.EffectReconciled(
            effect=number, happened=happened, asked=asked_seq, reference=reference, note=note,
            promises=promises if happened else (),
        ),
    )  # fmt: skip


def attestations_needed(effect: s.Effect) -> int:
    """How many people must state the same: a second one where the effect cannot be undone."""
    return 1 if effect.terms.reversible else 2


def attested(
    state: s.RunState, number: int, *, happened: bool, reference: str, how: str, person: str, now: datetime
) -> Events:
    """A person's statement about an unknown effect. Raises ConclusionRefused with the condition that fails, Refused."""
    effect = state.effects[number]
    if effect.status is not s.EffectStatus.UNKNOWN or not allows(state.state, e.EffectAttested):
        raise Refused(state.state, "EffectAttested")
    if condition := _may_not_attest(effect, happened, reference, how, person, now):
        raise ConclusionRefused(condition)
    said = e.EffectAttested(effect=number, happened=happened, reference=reference, how=how, person=person)
    agreeing = {a.person for a in _said(effect) if (a.happened, a.reference) == (happened, reference)}
    if len({*agreeing, person}) < attestations_needed(effect):
        return (said,)
    return said, e.AttestationAccepted(effect=number, happened=happened, reference=reference)


def _said(effect: s.Effect) -> tuple[s.Attestation, ...]:
    """The statements about the latest send: what was said of an earlier one says nothing about it."""
    return tuple(a for a in effect.attestations if a.seq > effect.last_send.seq)


def _may_not_attest(
    effect: s.Effect, happened: bool, reference: str, how: str, person: str, now: datetime
) -> str:
    if not how.strip():
        return "how_missing"
    if happened and not reference.strip():
        return "reference_missing"
    if not happened and now < effect.settled_at:
        return "too_early"
    said = (
        person,
        happened,
        reference,
    )  # with another reference it is a correction, and counts once all the same
    same = any((a.person, a.happened, a.reference) == said for a in _said(effect))
    return "second_person" if same else ""


def restarted(state: s.RunState, *, successor: str, note: str) -> Events:
    """The run closes and its successor goes on. Raises Refused where something is in flight or unknown, where a child
    goes on, or where a person asked for the end, unless it could not be reached: then going on is a new decision.
    """
    ending = state.cancel_requested and not state.undoing
    if state.open_effects or state.open_children or ending or not allows(state.state, e.RunRestarted):
        raise Refused(state.state, "RunRestarted")
    return (e.RunRestarted(successor=successor, note=note),)


def unserved(state: s.RunState, *, agent: str, version: str) -> Events:
    """No worker has the run's code. A cancel that undoes nothing needs none and ends the run; else a person, who
    finds effects that were left in flight as unknown.
    """
    if not state.undo_requested:
        if state.state is s.State.CANCELLING:
            return finish_cancel(state)
        if state.cancel_requested and (begun := begin_cancel(state)):
            return *begun, *finish_cancel(state)
    return *found_open(state), *human("version_unavailable", subject=agent, evidence=version)


def decided(state: s.RunState, decision: Decision, *, note: str) -> Events:
    """A person's decision in `needs_human`: one that all reasons allow. Raises Refused for any other."""
    if state.state is not s.State.NEEDS_HUMAN or decision not in safety.decisions_of(state):
        raise Refused(state.state, decision.value)
    match decision:
        case Decision.REPLAN:
            return (e.ReplanOrdered(note=note),)
        case Decision.RETRY:
            again = e.RunResumed(decision=decision.value, note=note, raised=_refused_steps(state))
            return again, *start_again(state)
        case Decision.END:
            return end(state)
        case Decision.RESUME:
            return (e.RunResumed(decision=decision.value, note=note), *_ask_first(state))
        case _:
            raise Refused(state.state, decision.value)


def _ask_first(state: s.RunState) -> Events:
    """A run that goes on with an effect unknown asks about it before anything else."""
    return tuple(
        e.OutcomeUnknown(effect=x.number, detail="the run was resumed: it is asked again")
        for x in state.open_effects
    )


def _refused_steps(state: s.RunState) -> tuple[str, ...]:
    """Steps whose operation did not happen in its latest round, and can only be done in a new one."""
    if state.plan is None or state.undoing != state.plan.plan.undo:
        return ()  # what the plan before the cancel left undone is not what is tried again
    return tuple(step.name for step in state.remaining if _needs_round(state, step))


def _needs_round(state: s.RunState, step: s.PlanStep) -> bool:
    if step.wait is not None:
        return any(r.code == "child_stopped" for r in state.reasons)
    known = state.by_operation(step.system, round_suffix(step.operation_id, state.round_of(step)))
    if known is not None and known.status is s.EffectStatus.COMPENSATED:
        return True
    if known is None or known.status is not s.EffectStatus.NOT_EXECUTED or known.receipt is None:
        return False
    return known.receipt.source in NEW_ROUND or not late.same_intent(known, step, state.plan)
