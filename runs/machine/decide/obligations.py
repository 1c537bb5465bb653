"""What people do about what is owed, and that its time is over."""

from __future__ import annotations

from datetime import datetime

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.decide.common import Events
from runs.machine.decide.people import ConclusionRefused
from runs.machine.transitions import Refused, allows


def owe(
    state: s.RunState, *, text: str, to: str, owner: e.Actor, due_at: datetime | None, by: str = ""
) -> Events:
    """A person writes down what the run owes. Raises Refused where the run is over, or has no such step to come."""
    if not allows(state.state, e.ObligationOpened) or (by and by not in {x.name for x in state.remaining}):
        raise Refused(state.state, e.ObligationOpened.__name__)
    return (e.ObligationOpened(text=text, to=to, owner=owner, due_at=due_at, by=by),)


def owed(state: s.RunState, number: int) -> s.Obligation | None:
    """The obligation of this number that is open, and that no successor has taken over; None where there is none."""
    found = next((x for x in state.open_obligations if x.number == number), None)
    return None if found is None or gone_on(state, found) else found


def gone_on(state: s.RunState, obligation: s.Obligation) -> bool:
    """Whether the run was restarted and its successor keeps it: all but what was opened after that."""
    if state.state is not s.State.RESTARTED or state.since is None:
        return False
    return obligation.opened_at <= state.since


def discharged(state: s.RunState, number: int, *, how: str, reference: str, person: str) -> Events:
    """A person states that it is done. Raises ConclusionRefused with what is missing, Refused where it is not owed."""
    if owed(state, number) is None or not allows(state.state, e.ObligationAttested):
        raise Refused(state.state, e.ObligationAttested.__name__)
    if not how.strip():
        raise ConclusionRefused("how_missing")
    if not reference.strip():
        raise ConclusionRefused("reference_missing")
    return (e.ObligationAttested(obligation=number, how=how, reference=reference, person=person),)


def handed_on(state: s.RunState, number: int, *, owner: e.Actor, note: str) -> Events:
    """Another person keeps it. Raises Refused where it is not owed, or that person keeps it already."""
    found = owed(state, number)
    if found is None or not allows(state.state, e.ObligationHandedOn):
        raise Refused(state.state, e.ObligationHandedOn.__name__)
    if found.owner is not None and found.owner.id == owner.id:
        raise ConclusionRefused("same_owner")
    return (e.ObligationHandedOn(obligation=number, owner=owner, note=note),)


def overdue(state: s.RunState, now: datetime) -> Events:
    """That the time of what is owed is over: said once of each, and not of what a successor keeps."""
    if not allows(state.state, e.ObligationOverdue):
        return ()
    return tuple(
        e.ObligationOverdue(obligation=x.number, due_at=x.due_at)
        for x in state.open_obligations
        if x.overdue(now) and x.overdue_seq is None and x.due_at is not None and not gone_on(state, x)
    )
