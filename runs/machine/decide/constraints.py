"""What the sources of constraints say about a run: what it is told, where it stops, and how it may go on."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from runs.machine import events as e
from runs.machine import safety
from runs.machine import state as s
from runs.machine.constraining import CONSTRAINTS, reason, shown
from runs.machine.constraints import Became, SourceNow, term_digest
from runs.machine.decide.common import Events
from runs.machine.transitions import Decision, Refused, allows


class AmendmentMoved(Exception):
    """The source states the constraint otherwise by now: read that text and decide again. Nothing changed."""

    def __init__(self, constraint: s.Constraint) -> None:
        self.constraint = constraint
        super().__init__(shown(constraint.number))


def accept(state: s.RunState, term: e.Term, *, reason: str) -> Events:
    """The run accepts another constraint from here on. Raises Refused where it has ended or is ending."""
    if state.cancel_requested or state.undoing or not allows(state.state, e.ConstraintAccepted):
        raise Refused(state.state, "ConstraintAccepted")
    return (e.ConstraintAccepted(number=len(state.constraints) + 1, term=term, reason=reason),)


def told(state: s.RunState, now: Mapping[int, SourceNow]) -> Events:
    """What the sources say that the run does not know yet. Nothing where it knows all, or has ended."""
    if not allows(state.state, e.ConstraintWithdrawn):
        return ()
    found = (_told(c, now[c.number]) for c in state.constraints if c.number in now)
    return tuple(event for event in found if event)


def _told(constraint: s.Constraint, source: SourceNow) -> e.Event | None:
    if constraint.withdrawn:
        return None
    if source.became is Became.WITHDRAWN:
        return e.ConstraintWithdrawn(number=constraint.number, why=source.why, by=source.by)
    known = constraint.amended.term if constraint.amended else constraint.term
    if source.became is Became.AMENDED and source.term and source.term != known:
        return e.ConstraintAmended(number=constraint.number, term=source.term, why=source.why, by=source.by)
    return None


def marked(state: s.RunState, now: Mapping[int, SourceNow]) -> Events:
    """As `told`, and the run stops for a person, once nothing is in flight or unknown: that is settled first."""
    events = told(state, now)
    return (*events, *stopped(state, events))


def withdrawn_here(state: s.RunState, number: int, *, why: str, by: e.Actor) -> Events:
    """A person withdraws a constraint for this run alone. Raises Refused where the run is over or ending, or where the
    constraint does not hold already; LookupError where there is none.
    """
    known = next((c for c in state.constraints if c.number == number), None)
    if known is None:
        raise LookupError(number)
    ending = state.cancel_requested or state.undoing
    if ending or known.withdrawn or not allows(state.state, e.ConstraintWithdrawn):
        raise Refused(state.state, "ConstraintWithdrawn")
    event = e.ConstraintWithdrawn(number=number, why=why, by=by, here=True)
    return (event, *stopped(state, (event,)))


def stopped(state: s.RunState, events: Events = ()) -> Events:
    """The stop that constraints ask for which do not stand as they were accepted; `events` come just before it.

    Nothing while effects are open, where the run is ending, and where it stands stopped for just that.
    """
    broken = {c.number: c for c in state.constraints if not c.stands} | _broken_by(state, events)
    ending = state.cancel_requested or state.undoing
    if not broken or ending or state.open_effects or not allows(state.state, e.HumanNeeded):
        return ()
    reasons = {x.code: x for x in reversed([reason(c) for c in broken.values()])}
    if reasons.keys() <= {r.code for r in state.reasons}:
        return ()
    return (e.HumanNeeded(reasons=tuple(reasons.values())),)


def _broken_by(state: s.RunState, events: Events) -> dict[int, s.Constraint]:
    """Those of the events, as they will stand."""
    known = {c.number: c for c in state.constraints}
    found = {}
    for event in events:
        if isinstance(event, e.ConstraintWithdrawn):
            gone = s.Gone(why=event.why, by=event.by, here=event.here, seq=0, at=state.at)
            found[event.number] = replace(known[event.number], withdrawn=gone, amended=None)
        elif isinstance(event, e.ConstraintAmended):
            said = s.Amended(term=event.term, why=event.why, by=event.by, seq=0, at=state.at)
            found[event.number] = replace(known[event.number], amended=said)
    return found


def amendment_accepted(state: s.RunState, number: int, *, seen: str, reason: str) -> Events:
    """A person accepts what the source of a constraint states now; `seen` is the `term_digest` of what they read.

    Raises AmendmentMoved where it states something else by now; Refused where nothing of the constraint waits to be
    accepted, or where the run's other reasons do not allow it; LookupError where there is no such constraint.
    """
    known = next((c for c in state.constraints if c.number == number), None)
    if known is None:
        raise LookupError(number)
    allowed = state.state is s.State.NEEDS_HUMAN and Decision.ACCEPT in safety.decisions_of(state)
    if not allowed or known.amended is None:
        raise Refused(state.state, "AmendmentAccepted")
    term = known.amended.term
    if term_digest(term) != seen:
        raise AmendmentMoved(known)
    return (e.AmendmentAccepted(number=number, term=term, reason=reason),)


def since(state: s.RunState, plan: s.PlanVersion) -> tuple[e.Cause, ...]:
    """What changed of the constraints since the plan was made, as causes of its end."""
    changed = (c for c in state.constraints if c.changed_seq > plan.seq)
    return tuple(
        e.Cause(what=CONSTRAINTS, subject=shown(c.number), was=_was(c, plan), now=_now(c)) for c in changed
    )


def _was(constraint: s.Constraint, plan: s.PlanVersion) -> str:
    if constraint.seq <= plan.seq:
        return constraint.term.text
    return constraint.before.text if constraint.before else ""


def _now(constraint: s.Constraint) -> str:
    if constraint.withdrawn:
        return ""
    return constraint.amended.term.text if constraint.amended else constraint.term.text
