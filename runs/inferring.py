"""`validate` for the limits that a planner says it read: where it read them, and that code can hold plans to them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from approvals.expressions import ExpressionRefused, compiled
from runs import agents, telling
from runs.limits import LONGEST_CONSTRAINT
from runs.machine import state as s
from runs.machine.canonical import Uncanonical, canonical, plain
from runs.machine.constraints import identity
from runs.machine.events import Term

MOST: Final = 20  #: limits that one proposal may add


def inferred(
    state: s.RunState, agent: agents.Agent, plan: agents.Plan, now: datetime
) -> tuple[tuple[tuple[Term, int], ...], tuple[str, ...]]:
    """The limits that are new to the run, each with its observation's number; and what is wrong with those that cannot
    be taken. A limit that a person revoked for the run is not taken again.
    """
    known = {identity(c.term) for c in state.constraints} | {*state.identity.exempt}
    found, problems = dict[str, tuple[Term, int]](), list[str]()
    for place, one in enumerate(plan.infers, 1):
        seen = _seen(state, agent, one.read, now)
        problems += [f"the limit {place} that it read: {x}" for x in _problems(place, one, seen)]
        if seen is not None and not problems:
            term = _term(agent, one, seen)
            if identity(term) not in known:
                found.setdefault(identity(term), (term, seen.number))
    return (() if problems else tuple(found.values())), tuple(map(plain, problems))


def _seen(state: s.RunState, agent: agents.Agent, read: agents.Read, now: datetime) -> s.Observation | None:
    try:
        seen = state.observations.get((read.tool, canonical(dict(read.arguments))))
    except (Uncanonical, TypeError, ValueError):
        return None
    return seen if seen and seen.expires_at > now else None


def _problems(place: int, one: agents.Infer, seen: s.Observation | None) -> Iterator[str]:
    if seen is None:
        yield f"{one.read.tool} was not read with these arguments, or is out of date"
    if not one.text.strip() or len(one.text) > LONGEST_CONSTRAINT:
        yield f"its text has from 1 to {LONGEST_CONSTRAINT} characters"
    if place > MOST:
        yield f"a proposal adds at most {MOST}"
    try:
        if one.predicate:
            compiled(one.predicate)
    except ExpressionRefused as error:
        yield f"its predicate cannot be evaluated: {error}"


def _term(agent: agents.Agent, one: agents.Infer, seen: s.Observation) -> Term:
    source = telling.asked(agent.reading(seen.tool), seen.arguments)
    return Term(
        text=plain(one.text), source_kind=s.INFERRED, source_ref=plain(source)[: agents.LONGEST_REFERENCE],
        source_version=seen.version, predicate=one.predicate,
    )  # fmt: skip
