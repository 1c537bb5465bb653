"""Where constraints come from: what a new run accepts of each source, and whether that still stands there.

A source is a module with `terms` and `standing`. A term that is held here says so in its reference; for any other its
kind says where it is asked about, and what no kind claims is stated by the agent's code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Final, Protocol
from uuid import UUID

from msgspec.structs import replace

from runs.agents import Agent
from runs.machine import state as s
from runs.machine.constraints import NOT_ASKED, Became, SourceNow, identity
from runs.machine.events import Confirmed, Term
from runs.sources import code, configuration, held, inferred
from runs.sources.configuration import SourceUnknown as SourceUnknown


class Source(Protocol):
    """One place that states constraints."""

    def terms(self, agent: Agent, *, tenant_id: UUID) -> tuple[Term, ...]:
        """What a new run of this agent in this tenant accepts of it."""
        ...

    def standing(
        self, agent: Agent | None, constraints: Iterable[s.Constraint], *, tenant_id: UUID
    ) -> Mapping[int, SourceNow]:
        """By constraint number what it says now. One that is left out was not asked. `agent`: the code that runs it."""
        ...


#: In the order in which a new run accepts what they state.
SOURCES: Final[tuple[Source, ...]] = (code, configuration, held, inferred)
#: Source kind -> the source that is asked about its constraints, where that is not the agent's code.
BY_KIND: Final[dict[str, Source]] = {configuration.KIND: configuration, inferred.KIND: inferred}


def terms_for(agent: Agent, *, tenant_id: UUID) -> tuple[Term, ...]:
    """The constraints that a new run of this agent accepts. Read them after the fence. Raises SourceUnknown."""
    return tuple(term for source in SOURCES for term in source.terms(agent, tenant_id=tenant_id))


def standing(agent: Agent | None, state: s.RunState) -> dict[int, SourceNow]:
    """For each constraint of the run what its source says now. `agent`: None where this process lacks the code."""
    tenant_id, found = UUID(state.identity.tenant), dict[int, SourceNow]()
    order = sorted(state.constraints, key=lambda c: SOURCES.index(source_of(c.term)))
    for source, constraints in groupby(order, key=lambda c: source_of(c.term)):
        found.update(source.standing(agent, list(constraints), tenant_id=tenant_id))
    return found


def source_of(term: Term) -> Source:
    """Where it is asked about."""
    return held if held.holds(term) else BY_KIND.get(term.source_kind, code)


def for_successor(closed: s.RunState, agent: Agent) -> tuple[Term, ...]:
    """What the successor of a run accepts: what is in force now, as it is stated now; what was withdrawn for the run
    alone stays out.
    """
    now = standing(agent, closed)
    carried = [term for c in closed.constraints if (term := _carried(c, now.get(c.number, NOT_ASKED)))]
    known = {identity(c.term) for c in closed.constraints} | {*closed.identity.exempt}
    new = terms_for(agent, tenant_id=UUID(closed.identity.tenant))
    return (*carried, *(term for term in new if identity(term) not in known))


def stated_since(agent: Agent | None, state: s.RunState) -> tuple[Term, ...]:
    """What is stated for the agent by now and the run has not accepted: it is shown, and does not bind the run."""
    if agent is None:
        return ()
    known = {identity(c.term) for c in state.constraints} | {*state.identity.exempt}
    try:
        stated = terms_for(agent, tenant_id=UUID(state.identity.tenant))
    except SourceUnknown:
        return ()
    unnamed = {identity(replace(c.term, name="")) for c in state.constraints}
    return tuple(
        t for t in stated if identity(t) not in known and identity(replace(t, name="")) not in unnamed
    )


def confirmed(before: s.RunState, terms: Iterable[Term]) -> dict[str, Confirmed]:
    """Of terms that a run takes over from another, who confirmed there what an agent had inferred."""
    known = {identity(c.term): c.confirmed for c in before.constraints if c.confirmed}
    found = ((str(number), known.get(identity(term))) for number, term in enumerate(terms, 1))
    return {number: said for number, said in found if said}


def exempt(closed: s.RunState) -> tuple[str, ...]:
    """What neither the successor nor one after it accepts, though it stands."""
    here = (identity(c.term) for c in closed.constraints if c.withdrawn and c.withdrawn.here)
    return tuple(dict.fromkeys((*closed.identity.exempt, *here)))


def _carried(constraint: s.Constraint, source: SourceNow) -> Term | None:
    """As it is stated now. One whose source cannot be asked goes on as it was accepted."""
    if constraint.withdrawn or source.became is Became.WITHDRAWN:
        return None
    return source.term if source.became is Became.AMENDED else constraint.term
