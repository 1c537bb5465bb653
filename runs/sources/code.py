"""Constraints that an agent's code states: those of the version that is registered here."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from msgspec.structs import replace

from runs.agents import Agent
from runs.machine import state as s
from runs.machine.constraints import STANDS, Became, SourceNow, identity
from runs.machine.events import Term


def terms(agent: Agent, *, tenant_id: UUID) -> tuple[Term, ...]:
    """All that its registered version states, the same for every tenant."""
    return tuple(
        Term(
            text=c.text, source_kind=c.source_kind, source_ref=c.source_ref, source_version=c.source_version,
            name=c.name, predicate=c.predicate,
        )
        for c in agent.constraints
    )  # fmt: skip


def standing(
    agent: Agent | None, constraints: Iterable[s.Constraint], *, tenant_id: UUID
) -> dict[int, SourceNow]:
    """Against what the version states that runs it; without the code nobody is asked."""
    if agent is None:
        return {}
    stated = terms(agent, tenant_id=tenant_id)
    now = {**{_unnamed(term): term for term in stated}, **{identity(term): term for term in stated}}
    return {c.number: _became(c.term, now.get(identity(c.term))) for c in constraints}


def _unnamed(term: Term) -> str:
    """Under which a run knows it that accepted it before it had a name."""
    return identity(replace(term, name=""))


def _became(accepted: Term, current: Term | None) -> SourceNow:
    if current is None:
        return SourceNow(became=Became.WITHDRAWN)
    same = replace(accepted, name=current.name) == current
    return STANDS if same else SourceNow(became=Became.AMENDED, term=current)
