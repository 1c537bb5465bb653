"""Where constraints come from, and whether they still stand there.

The configuration of an agent is the one source so far: the constraints that its registered version states.
"""

from __future__ import annotations

from collections.abc import Iterable

from runs.agents import Agent
from runs.machine import state as s
from runs.machine.events import Term

WITHDRAWN = "withdrawn"


def terms_of(agent: Agent) -> tuple[Term, ...]:
    """The constraints that a new run of this agent accepts."""
    return tuple(
        Term(
            text=c.text,
            source_kind=c.source_kind,
            source_ref=c.source_ref,
            source_version=c.source_version,
            name=c.name,
            predicate=c.predicate,
        )
        for c in agent.constraints
    )


def standing(agent: Agent, constraints: Iterable[s.Constraint]) -> dict[int, str]:
    """For each constraint number: empty where it stands at its source as accepted, else what became of it."""
    now = {(t.source_kind, t.source_ref, t.text): t for t in terms_of(agent)}
    return {
        c.number: _became(c.term, now.get((c.term.source_kind, c.term.source_ref, c.term.text)))
        for c in constraints
    }


def _became(accepted: Term, current: Term | None) -> str:
    if current is None:
        return WITHDRAWN
    return "" if current.source_version == accepted.source_version else f"version {current.source_version}"
