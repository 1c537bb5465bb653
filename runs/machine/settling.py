"""What late evidence against the record, and people's findings about it, do to the parts of a state.

Used by `evolve`. The record and the evidence both stay: a finding is added to them, and is never a receipt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from runs.machine import events as e
from runs.machine import evolving, late
from runs.machine import state as s

if TYPE_CHECKING:
    from runs.machine.draft import Draft

#: The source of a record that people found to be so against what was recorded before.
SOURCE: Final = "finding"


def kept(draft: Draft, event: e.EvidenceKept, recorded: e.Recorded) -> None:
    """It stands beside the record. Where it contradicts that, a closed run has it as its reason to be looked at."""
    if event.executed is None:
        return
    effect = draft.effects[event.effect]
    came = s.Late(
        seq=recorded.seq, at=recorded.at, executed=event.executed, reference=event.reference,
        contradicts=event.contradicts, raises=event.raises,
    )  # fmt: skip
    draft.effects[event.effect] = replace(effect, late=(*effect.late, came))
    if draft.state in s.TERMINAL:
        name_contradiction(draft)


def stated(draft: Draft, event: e.ContradictionStated, recorded: e.Recorded) -> None:
    """One person's finding, kept for ever."""
    effect = draft.effects[event.effect]
    said = s.Found(
        person=event.person, name=recorded.actor.name, evidence=event.evidence, finding=event.finding,
        reference=event.reference, how=event.how, seq=recorded.seq, at=recorded.at,
    )  # fmt: skip
    draft.effects[event.effect] = replace(effect, findings=(*effect.findings, said))


def settled(draft: Draft, event: e.ContradictionSettled, recorded: e.Recorded) -> None:
    """What is left to say about the effect, and what follows from the finding."""
    effect = draft.effects[event.effect]
    left = tuple(
        replace(c, finding=event.finding, settled_seq=recorded.seq) if c.seq in event.settles else c
        for c in effect.late
    )
    draft.effects[event.effect] = replace(effect, late=left)
    match event.finding:
        case s.Finding.HAPPENED:
            _record(draft, event, recorded, s.EffectStatus.CONFIRMED)
            draft.rounds[effect.operation] = effect.round
        case s.Finding.NOT_HAPPENED:
            _record(draft, event, recorded, s.EffectStatus.NOT_EXECUTED)
            steps = tuple(step for step, number in draft.done.items() if number == event.effect)
            _undone(draft, steps, since=effect.receipt.seq if effect.receipt else 0)
            evolving.stands_again(draft, effect)
        case s.Finding.HAPPENED_TWICE:
            _owes_undoing(draft, effect, event.owes, recorded)
    if draft.state in s.TERMINAL:
        draft.reasons = ()
        name_contradiction(draft)


def _record(
    draft: Draft, event: e.ContradictionSettled, recorded: e.Recorded, status: s.EffectStatus
) -> None:
    receipt = s.Receipt(
        seq=recorded.seq, at=recorded.at, executed=status is s.EffectStatus.CONFIRMED, reference=event.reference,
        source=SOURCE, detail="", failed=None, by_person=True,
    )  # fmt: skip
    draft.effects[event.effect] = replace(draft.effects[event.effect], status=status, receipt=receipt)


def step_of(draft: Draft, effect: s.Effect) -> str:
    """The step of the latest plan that is this very effect; empty where it has none."""
    steps = draft.plans[-1].plan.steps if draft.plans else ()
    plan = draft.plans[-1] if draft.plans else None
    same = (x for x in steps if f"{x.system} {x.operation_id}" == effect.operation)
    return next((x.name for x in same if late.same_intent(effect, x, plan)), "")


def _undone(draft: Draft, steps: tuple[str, ...], *, since: int) -> None:
    """The steps are to be done again; what their receipts had discharged is owed again."""
    for step in steps:
        draft.done.pop(step, None)
    draft.obligations = tuple(
        replace(o, discharged_seq=None)
        if o.by in steps and not o.open and not o.attested and (o.discharged_seq or 0) >= since
        else o
        for o in draft.obligations
    )


def _owes_undoing(draft: Draft, effect: s.Effect, text: str, recorded: e.Recorded) -> None:
    """The second one has to be undone: owed until a step of that name is done, and told to the planner."""
    by = f"undo:{effect.step}"
    draft.obligations += (
        s.Obligation(
            number=len(draft.obligations) + 1, text=text, by=by, opened_seq=recorded.seq, opened_at=recorded.at,
            due_at=None, source=s.Source.FINDING,
        ),
    )  # fmt: skip
    draft.advice += (f"{text} ({by})",)


def inherited_lost(draft: Draft, event: e.InheritedLost, recorded: e.Recorded) -> None:
    """It does not stand; its steps are to be done in a round of their own."""
    gone = (event.run, event.effect)
    draft.inherited = tuple(x for x in draft.inherited if (x.run, x.effect) != gone)
    draft.rounds[event.operation] = max(draft.rounds.get(event.operation, 0), event.round + 1)
    _undone(draft, tuple(x for x in event.steps if draft.done.get(x) == 0), since=0)


def name_contradiction(draft: Draft) -> None:
    """The reason names the oldest evidence that has to be settled; nothing where there is none."""
    for effect in draft.effects.values():
        for came in effect.late:
            if came.open and came.raises:
                reason = e.Reason(
                    code="effect_conflict", subject=f"E-{effect.number}", evidence=came.reference
                )
                others = tuple(r for r in draft.reasons if r.code != reason.code)
                draft.reasons = (*others, reason)
                return
