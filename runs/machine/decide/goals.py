"""Revising the goal: when that may be, what of the run it ends, and the safe point at which a plan in hand ends."""

from __future__ import annotations

import msgspec

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical, digest
from runs.machine.decide.common import Events
from runs.machine.decide.constraints import since
from runs.machine.evolving import GOAL
from runs.machine.transitions import ANSWERED_BY_GOAL, Refused, allows


class GoalMoved(Exception):
    """Another goal was committed meanwhile: look at both texts and decide again. Nothing changed."""

    def __init__(self, *, expected: int, committed: s.Goal) -> None:
        self.expected, self.committed = expected, committed
        super().__init__(f"v{expected} -> v{committed.version}")


class GoalUnchanged(Exception):
    """The text is the committed goal, word for word: there is nothing to revise."""


class GoalImpact(msgspec.Struct, frozen=True, kw_only=True):
    """What a revision would do to the run as it stands, in numbers that a person can be shown and that are compared."""

    goal: int
    plan: int | None = None  #: the version that ends
    at_once: bool = True  #: it ends with the revision, and not at the safe point
    request: str = ""  #: the request or approval that is voided
    status: str = ""
    obligations: tuple[int, ...] = ()
    standing: tuple[int, ...] = ()
    open_effects: tuple[int, ...] = ()
    children: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()  #: reasons of a stop that end with it
    reasons: tuple[str, ...] = ()  #: those that stay

    @property
    def digest(self) -> str:
        """Equal digests: the same impact."""
        return digest("goal impact", canonical(msgspec.to_builtins(self)))


def cannot_revise(state: s.RunState) -> str:
    """Why the goal cannot be revised now, as a code; empty where it can.

    `over` (the run has ended), `ending` (its end was asked for: it does not go on towards any goal).
    """
    if state.state in s.TERMINAL:
        return "over"
    ending = state.cancel_requested or state.undoing
    return "ending" if ending or not allows(state.state, e.GoalRevised) else ""


def revised(state: s.RunState, *, text: str, reason: str, expected: int) -> Events:
    """A person gives the run another goal, in place of version `expected`. Raises Refused where `cannot_revise`,
    GoalMoved where another one was committed meanwhile, GoalUnchanged.
    """
    if cannot_revise(state):
        raise Refused(state.state, "GoalRevised")
    if state.goal.version != expected:
        raise GoalMoved(expected=expected, committed=state.goal)
    if state.goal.text == text:
        raise GoalUnchanged
    return (e.GoalRevised(version=expected + 1, text=text, reason=reason),)


def goal_impact(state: s.RunState) -> GoalImpact:
    """What a revision of the goal would end, and what it would leave."""
    request, busy = state.request, bool(state.open_effects or state.open_children)
    open_request = request if request and request.status in s.OPEN_REQUEST else None
    codes = tuple(r.code for r in state.reasons)
    return GoalImpact(
        goal=state.goal.version,
        plan=_ends(state), at_once=not busy,
        request=open_request.id if open_request else "", status=open_request.status if open_request else "",
        obligations=tuple(o.number for o in state.open_obligations),
        standing=tuple(x.number for x in state.effects.values() if x.status is s.EffectStatus.CONFIRMED),
        open_effects=tuple(x.number for x in state.open_effects),
        children=tuple(c.run for c in state.open_children),
        answered=tuple(c for c in codes if c in ANSWERED_BY_GOAL),
        reasons=tuple(c for c in codes if c not in ANSWERED_BY_GOAL),
    )  # fmt: skip


def _ends(state: s.RunState) -> int | None:
    """The plan version that a revision ends: the one in force; none where it was carried out or has ended."""
    carried_out = (state.before or state.state) is s.State.PLANNING
    if state.plan is None or state.plan.voided_seq is not None or carried_out:
        return None
    return state.plan.version


def leave_outdated(state: s.RunState) -> Events:
    """The safe point: the plan for an earlier goal, or made under other constraints, ends once nothing that it began
    is open; nothing before that.
    """
    if not state.outdated or state.open_effects or state.open_children:
        return ()
    if state.plan is None or not allows(state.state, e.PlanVoided):
        return ()
    causes = (*_other_goal(state, state.plan), *since(state, state.plan))
    return (e.PlanVoided(version=state.plan.version, causes=causes),)


def _other_goal(state: s.RunState, plan: s.PlanVersion) -> tuple[e.Cause, ...]:
    was, now = plan.plan.goal_version, state.goal.version
    return () if was == now else (e.Cause(what=GOAL, subject="", was=str(was), now=str(now)),)
