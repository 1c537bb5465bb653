"""Limits that come to a run while it goes on: what an agent read in a document, and what a person adds."""

from __future__ import annotations

import msgspec

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical, digest
from runs.machine.decide.common import Events
from runs.machine.transitions import Refused, allows


def inferred(state: s.RunState, found: tuple[tuple[e.Term, int], ...]) -> Events:
    """The run binds itself to these, each with the observation that it was read in. More limits, never fewer."""
    if not found or not allows(state.state, e.ConstraintAccepted):
        return ()
    first = len(state.constraints) + 1
    return tuple(
        e.ConstraintAccepted(number=number, term=term, observed=observed)
        for number, (term, observed) in enumerate(found, first)
    )


def confirmed(state: s.RunState, number: int, *, note: str) -> Events:
    """A person confirms a constraint that the agent inferred. LookupError where there is none of this number; Refused
    where nothing is to be confirmed.
    """
    known = next((c for c in state.constraints if c.number == number), None)
    if known is None:
        raise LookupError(number)
    if not known.unconfirmed or known.withdrawn or not allows(state.state, e.ConstraintConfirmed):
        raise Refused(state.state, "ConstraintConfirmed")
    return (e.ConstraintConfirmed(number=number, note=note),)


class LimitImpact(msgspec.Struct, frozen=True, kw_only=True):
    """What one more constraint would end of the run as it stands, to be shown before and compared at the commit."""

    plan: int | None = None  #: the version that ends
    at_once: bool = True  #: it ends with it, and not at the safe point
    request: str = ""  #: the request or approval that is voided
    status: str = ""
    open_effects: tuple[int, ...] = ()
    children: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()  #: of a stop, which stay

    @property
    def digest(self) -> str:
        """Equal digests: the same impact."""
        return digest("limit impact", canonical(msgspec.to_builtins(self)))


def cannot_limit(state: s.RunState) -> str:
    """Why no constraint can be added now, as a code; empty where one can: `over`, `ending`."""
    if state.state in s.TERMINAL:
        return "over"
    ending = state.cancel_requested or state.undoing
    return "ending" if ending or not allows(state.state, e.ConstraintAccepted) else ""


def limit_impact(state: s.RunState) -> LimitImpact:
    """What ends with one more constraint."""
    request, plan = state.request, state.plan
    asked = request if request and request.status in s.OPEN_REQUEST else None
    in_force = (
        plan is not None and plan.voided_seq is None and (state.before or state.state) is not s.State.PLANNING
    )
    return LimitImpact(
        plan=plan.version if plan and in_force else None,
        at_once=not (state.open_effects or state.open_children),
        request=asked.id if asked else "", status=asked.status.value if asked else "",
        open_effects=tuple(x.number for x in state.open_effects),
        children=tuple(c.run for c in state.open_children),
        reasons=tuple(r.code for r in state.reasons),
    )  # fmt: skip
