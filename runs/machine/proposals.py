"""What people asked to be changed, as proposals of constraints: each with its number, its author and its time.

They are read off the decisions on the run's requests, so that no second record can differ from these.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from runs.machine import state as s

ASKED = "ask"  #: the verdict of a decision that asks for changes


class ProposedConstraint(msgspec.Struct, frozen=True, kw_only=True):
    """A person's words about a plan version: a proposal to the planner. No constraint that code holds."""

    number: int  #: from 1, in the order in which they were asked
    text: str
    person: str
    name: str
    version: int  #: of the plan that they were said about
    seq: int
    at: datetime


def proposed_constraints(state: s.RunState) -> tuple[ProposedConstraint, ...]:
    """All of the run, the oldest first."""
    asked = [(r.version, d) for r in state.requests for d in r.decisions if d.verdict == ASKED]
    return tuple(
        ProposedConstraint(
            number=number, text=d.reason, person=d.person, name=d.name, version=version, seq=d.seq, at=d.at
        )
        for number, (version, d) in enumerate(asked, 1)
    )


def before(state: s.RunState, plan: s.PlanVersion) -> tuple[ProposedConstraint, ...]:
    """Those that stood when the plan version was proposed."""
    return tuple(asked for asked in proposed_constraints(state) if asked.seq < plan.seq)


def answers(state: s.RunState) -> tuple[str, ...]:
    """What people wrote for the planner without proposing a constraint: answers, and notes to their decisions."""
    said = list(state.advice)
    for asked in proposed_constraints(state):
        if asked.text in said:
            said.remove(asked.text)
    return tuple(said)
