"""What events about constraints do to the parts of a state. Used by `evolve`.

Each returns the causes that end what was made under the constraints before; none while a run is undone, since that
rests on no constraint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from runs.machine import assumptions
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.constraints import constraints_digest, said

if TYPE_CHECKING:
    from runs.machine.draft import Draft

Causes = tuple[e.Cause, ...]
#: The cause with which a changed constraint ends a plan, as the check of that name does.
CONSTRAINTS: Final = "constraints"
DIGEST: Final = "constraints_digest"
AMENDED: Final = "constraint_amended"


def shown(number: int) -> str:
    """A constraint's name in the run."""
    return f"C-{number}"


def accepted(draft: Draft, event: e.ConstraintAccepted, recorded: e.Recorded) -> Causes:
    """One more, from here on."""
    new = s.Constraint(
        number=event.number, term=event.term, seq=recorded.seq, at=recorded.at, observed=event.observed
    )
    return _become(draft, (*draft.constraints, new), recorded, new, was="", now=event.term.text)


def confirmed(draft: Draft, event: e.ConstraintConfirmed, recorded: e.Recorded) -> None:
    """A person stands for it too. It says what it said, so nothing that was made under it ends."""
    said = e.Confirmed(by=recorded.actor, at=recorded.at, note=event.note)
    draft.constraints = _with(draft, replace(_known(draft, event.number), confirmed=said))


def withdrawn(draft: Draft, event: e.ConstraintWithdrawn, recorded: e.Recorded) -> Causes:
    """It is kept, and holds no more."""
    gone = s.Gone(why=event.why, by=event.by, here=event.here, seq=recorded.seq, at=recorded.at)
    known = _known(draft, event.number)
    changed = replace(known, withdrawn=gone, amended=None)
    assumptions.constraint_gone(draft, event.number, recorded)
    return _become(draft, _with(draft, changed), recorded, changed, was=known.term.text, now="")


def amended(draft: Draft, event: e.ConstraintAmended, recorded: e.Recorded) -> Causes:
    """What was accepted holds until a person accepts the other text: the run stops."""
    known = _known(draft, event.number)
    said = s.Amended(term=event.term, why=event.why, by=event.by, seq=recorded.seq, at=recorded.at)
    changed = replace(known, amended=said)
    assumptions.constraint_gone(draft, event.number, recorded)
    return _become(draft, _with(draft, changed), recorded, changed, was=known.term.text, now=event.term.text)


def amendment_accepted(draft: Draft, event: e.AmendmentAccepted, recorded: e.Recorded) -> Causes:
    """The new term takes the place; the run stops on where another amendment waits."""
    known = _known(draft, event.number)
    changed = replace(
        known, term=event.term, before=known.term, amended=None, seq=recorded.seq, at=recorded.at
    )
    causes = _become(
        draft, _with(draft, changed), recorded, changed, was=known.term.text, now=event.term.text
    )
    left = [c for c in draft.constraints if c.amended and not c.withdrawn]
    others = tuple(r for r in draft.reasons if r.code != AMENDED)
    draft.reasons = (*others, *(reason(c) for c in left[:1]))
    draft.retry_at, draft.failures, draft.replans = None, 0, 0
    return causes


def reason(constraint: s.Constraint) -> e.Reason:
    """Why a run stops for a constraint that does not stand as it was accepted."""
    gone, other = constraint.withdrawn, constraint.amended
    if gone or other is None:
        why = gone.why if gone else ""
        return e.Reason(code="constraint_withdrawn", subject=shown(constraint.number), evidence=why)
    return e.Reason(code=AMENDED, subject=shown(constraint.number), evidence=said(other.term))


def _known(draft: Draft, number: int) -> s.Constraint:
    return next(c for c in draft.constraints if c.number == number)


def _with(draft: Draft, changed: s.Constraint) -> tuple[s.Constraint, ...]:
    return tuple(changed if c.number == changed.number else c for c in draft.constraints)


def _become(
    draft: Draft,
    constraints: tuple[s.Constraint, ...],
    recorded: e.Recorded,
    changed: s.Constraint,
    *,
    was: str,
    now: str,
) -> Causes:
    before = constraints_digest(draft.constraints)
    draft.constraints, draft.constrained_seq = constraints, recorded.seq
    if draft.direction is s.Direction.UNDO:
        return ()
    causes = [e.Cause(what=CONSTRAINTS, subject=shown(changed.number), was=was, now=now)]
    if (after := constraints_digest(constraints)) != before:
        causes.append(e.Cause(what=DIGEST, subject="", was=before, now=after))
    return tuple(causes)
