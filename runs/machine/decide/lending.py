"""Authority or money lent anew to a run that lost what it acted on."""

from __future__ import annotations

from decimal import Decimal

from runs.machine import events as e
from runs.machine import safety
from runs.machine import state as s
from runs.machine.decide.common import Events, human
from runs.machine.evolving import CURED
from runs.machine.transitions import Decision, Refused


def may_lend(state: s.RunState) -> bool:
    """Whether lending anew is one of the ways on for the run as it stands."""
    stopped = state.state is s.State.NEEDS_HUMAN and any(r.code in CURED for r in state.reasons)
    return stopped and Decision.LEND in safety.decisions_of(state)


def lent(
    state: s.RunState,
    what: e.Lent,
    *,
    note: str,
) -> Events:
    """The run goes on under another grant, after a person approved what is left of its plan. Raises Refused.

    A run with a limit of its own gets that limit raised by what is lent.
    """
    if not may_lend(state):
        raise Refused(state.state, e.AuthorityLent.__name__)
    budget = None
    if state.identity.budget is not None and what.budget is not None:
        budget = str(state.spent + Decimal(what.budget))
    return (e.AuthorityLent(lent=what, was=state.grant, note=note, budget=budget),)


def authority_over(state: s.RunState, why: str) -> Events:
    """A run that asks for approval although what it acts on is over (`why`) stops: first somebody has to lend anew."""
    if state.state is not s.State.WAITING_APPROVAL or not why:
        return ()
    name = state.lendings[-1].lent.name if state.lendings else ""
    return human("authority_lost", subject=name, evidence=why)


def lent_anew(state: s.RunState) -> e.ApprovalVoided:
    """The end of the request or approval that was made under the grant before."""
    before, now = state.lendings[-2].lent, state.lendings[-1].lent
    asked = state.requests[-1]
    cause = e.Cause(what="grant", subject=now.name, was=before.grant, now=now.grant)
    return e.ApprovalVoided(request=asked.id, version=asked.version, causes=(cause,))
