"""Evidence against the record of a settled effect: when it is that, and what people may find about it."""

from __future__ import annotations

from datetime import datetime

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.decide.common import Events, human
from runs.machine.decide.people import ConclusionRefused
from runs.machine.decide.sends import refusal_code
from runs.machine.transitions import Refused, allows


def contradicted_by(effect: s.Effect, executed: bool, reference: str) -> bool:
    """Whether the record and this cannot both be true, and no person has settled the very same before."""
    if effect.receipt is None or not _differ(effect.receipt, executed, reference):
        return False
    return not any((x.executed, x.reference) == (executed, reference) for x in effect.late if x.settled_seq)


def _differ(stored: s.Receipt, executed: bool, reference: str) -> bool:
    """One says that it happened and one not, or it happened twice."""
    if stored.executed != executed:
        return True
    return executed and bool(stored.reference) and stored.reference != reference


def findings(
    state: s.RunState, effect: s.Effect, came: s.Late, now: datetime, *, again_in: str = ""
) -> dict[s.Finding, str]:
    """What may be found about the evidence: finding -> empty, or the condition that fails.

    `again_in` names what else stands under the operation: in another round, or in another run of the lineage.
    """
    again = again_in or done_again(state, effect)
    recorded = effect.receipt is not None and effect.receipt.executed
    found = {s.Finding.AS_RECORDED: ""}
    if came.executed and not recorded:
        found[s.Finding.HAPPENED] = "stands_again" if again else ""
    if recorded and not came.executed and effect.status is s.EffectStatus.CONFIRMED:
        found[s.Finding.NOT_HAPPENED] = "" if now >= effect.settled_at else "too_early"
    if came.executed and (recorded or again):
        found[s.Finding.HAPPENED_TWICE] = ""
    if any(x.operation == effect.operation for x in state.open_effects):
        found |= dict.fromkeys(set(found) - {s.Finding.AS_RECORDED}, "open_first")
    return found


def done_again(state: s.RunState, effect: s.Effect) -> str:
    """The effect of this run that stands under the same operation in another round; empty where none does."""
    others = (
        x for x in state.effects.values() if x.number != effect.number and x.operation == effect.operation
    )
    return next((f"E-{x.number}" for x in others if x.status is s.EffectStatus.CONFIRMED), "")


def findings_needed(effect: s.Effect, finding: s.Finding) -> int:
    """How many people must find the same: a second one where the record changes and it cannot be undone."""
    changes = finding in (s.Finding.HAPPENED, s.Finding.NOT_HAPPENED)
    return 2 if changes and not effect.terms.reversible else 1


def found(
    state: s.RunState,
    number: int,
    *,
    evidence: int,
    finding: s.Finding,
    reference: str,
    how: str,
    person: str,
    now: datetime,
    again_in: str = "",
    owes: str = "",
) -> Events:
    """A person's finding about evidence that contradicts the record. Raises ConclusionRefused, Refused.

    `owes` is the obligation in words that opens where it happened twice.
    """
    effect = state.effects[number]
    came = next((x for x in effect.late if x.seq == evidence and x.open), None)
    if came is None or not allows(state.state, e.ContradictionSettled):
        raise Refused(state.state, "ContradictionSettled")
    reference = _reference(finding, came, reference)
    if condition := _may_not(state, effect, came, finding, reference, how, person, now, again_in):
        raise ConclusionRefused(condition)
    said = e.ContradictionStated(
        effect=number, evidence=evidence, finding=finding.value, reference=reference, how=how, person=person
    )
    same = (evidence, finding.value, reference)
    agreeing = {x.person for x in effect.findings if (x.evidence, x.finding, x.reference) == same}
    if len({*agreeing, person}) < findings_needed(effect, finding):
        return (said,)
    settled = e.ContradictionSettled(
        effect=number, evidence=evidence, finding=finding.value, reference=reference,
        settles=tuple(x.seq for x in effect.late if x.open and _said_by(x, came, finding, reference)),
        owes=owes if finding is s.Finding.HAPPENED_TWICE else "",
    )  # fmt: skip
    return said, *_then(state, effect, finding, how), settled


def _reference(finding: s.Finding, came: s.Late, given: str) -> str:
    """What happened has the reference that is given, or that of the evidence."""
    if finding in (s.Finding.HAPPENED, s.Finding.HAPPENED_TWICE):
        return given.strip() or came.reference
    return ""


def _may_not(
    state: s.RunState,
    effect: s.Effect,
    came: s.Late,
    finding: s.Finding,
    reference: str,
    how: str,
    person: str,
    now: datetime,
    again_in: str,
) -> str:
    allowed = findings(state, effect, came, now, again_in=again_in)
    if finding not in allowed:
        return "no_such_finding"
    if allowed[finding]:
        return allowed[finding]
    if not how.strip():
        return "how_missing"
    if finding in (s.Finding.HAPPENED, s.Finding.HAPPENED_TWICE) and not reference:
        return "reference_missing"
    said = (person, came.seq, finding.value, reference)
    same = any((x.person, x.evidence, x.finding, x.reference) == said for x in effect.findings)
    return "second_person" if same else ""


def _said_by(other: s.Late, came: s.Late, finding: s.Finding, reference: str) -> bool:
    """Whether nothing is left to say about the other evidence either: it is the same, or as the record is now."""
    if (other.executed, other.reference) == (came.executed, came.reference):
        return True
    match finding:
        case s.Finding.HAPPENED:
            return other.executed and other.reference == reference
        case s.Finding.NOT_HAPPENED:
            return not other.executed
    return False


def _then(state: s.RunState, effect: s.Effect, finding: s.Finding, how: str) -> Events:
    """Doing again what did not happen is a person's decision, and a round of its own: its key may be used up."""
    if finding is not s.Finding.NOT_HAPPENED or state.state in s.TERMINAL:
        return ()
    return human(refusal_code(state), subject=f"E-{effect.number}", evidence=how)


def inherited_lost(state: s.RunState, run: str, effect: s.Effect, steps: tuple[str, ...]) -> Events:
    """What a run does that took an effect of its lineage for done, once people found that it did not happen."""
    taken = any((x.run, x.effect) == (run, effect.number) for x in state.inherited)
    if not (taken or steps) or not allows(state.state, e.InheritedLost):
        return ()
    lost = e.InheritedLost(
        run=run, effect=effect.number, operation=effect.operation, round=effect.round, steps=steps
    )
    why = f"{run} E-{effect.number} was taken for done, and people found that it did not happen"
    return lost, *human("effect_conflict", subject=steps[0] if steps else effect.step, evidence=why)
