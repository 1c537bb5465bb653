"""Constraints that are held here, as versions in `runs_statement`: of people, policies and tenants.

The latest version of one counts, from its commit on. Read after the fence where something is decided by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

import msgspec
from django.db.models import QuerySet

from runs.agents import Agent
from runs.machine import state as s
from runs.machine.constraints import STANDS, Became, SourceNow
from runs.machine.events import Actor, ActorKind, Term
from runs.models import Statement
from runs.prepared import Prepared

PREFIX: Final = "held/"  #: of the reference of every constraint that is held here
# For whom a constraint is, its versions have in common: the many of single runs are not looked at. Asked at each check
# of a run, for which Django takes longer to write it than PostgreSQL to answer.
_FOR_AGENT = Prepared(
    name="handoff_held_for_agent",
    sql="""SELECT coalesce(json_agg(json_build_object(
        'text', text, 'source_kind', kind, 'source_ref', ref, 'source_version', version::text,
        'name', name, 'predicate', predicate) ORDER BY id), '[]')::text
    FROM (
        SELECT DISTINCT ON (s.ref) s.id, s.text, s.kind, s.ref, s.version, s.name, s.predicate, s.withdrawn
        FROM runs_statement s LEFT JOIN runs_agent a ON a.id = s.agent_id
        WHERE s.tenant_id = %s AND s.run_id IS NULL AND (s.agent_id IS NULL OR a.name = %s)
        ORDER BY s.ref, s.version DESC
    ) latest WHERE NOT withdrawn""",
)
_terms = msgspec.json.Decoder(tuple[Term, ...]).decode


def holds(term: Term) -> bool:
    """Whether the constraint is held here, or was in the database that its run comes from."""
    return term.source_ref.startswith(PREFIX)


def term_of(row: Statement) -> Term:
    """A version as runs accept it."""
    return Term(
        text=row.text, source_kind=row.kind, source_ref=row.ref, source_version=str(row.version),
        name=row.name, predicate=row.predicate,
    )  # fmt: skip


def latest(*, tenant_id: UUID) -> QuerySet[Statement]:
    """The version of each that counts, also of those that are withdrawn."""
    return latest_of(Statement.objects.filter(tenant_id=tenant_id).select_related("by", "agent", "run"))


def latest_of(versions: QuerySet[Statement]) -> QuerySet[Statement]:
    """Of these the version of each that counts."""
    return versions.order_by("tenant", "ref", "-version").distinct("tenant", "ref")


def terms(agent: Agent, *, tenant_id: UUID) -> tuple[Term, ...]:
    """What stands for all agents of the tenant, and for this one. What is for a single run, that run alone accepts."""
    return _terms(_FOR_AGENT.call([str(tenant_id), agent.name]) or "")


def standing(
    agent: Agent | None, constraints: Iterable[s.Constraint], *, tenant_id: UUID
) -> dict[int, SourceNow]:
    """Against the latest version. One of another database cannot be asked about here."""
    accepted = {c.term.source_ref: c for c in constraints}
    rows = {row.ref: row for row in latest(tenant_id=tenant_id).filter(ref__in=list(accepted))}
    return {c.number: became(c.term, rows.get(ref)) for ref, c in accepted.items()}


def accepted(state: s.RunState) -> dict[str, str] | None:
    """Reference -> version of those held here that a send rests on; None where there are none, and while a run is
    undone, which rests on no constraint.
    """
    if state.undoing:
        return None
    return {c.term.source_ref: c.term.source_version for c in state.constraints if holds(c.term)} or None


def became(accepted: Term, row: Statement | None) -> SourceNow:
    """What the latest version says of a constraint as it was accepted; None: there is none here."""
    if row is None:
        return SourceNow(became=Became.UNREACHABLE, why="it is not held in this database")
    by = Actor(ActorKind.PERSON, str(row.by_id), row.by.shown_name)
    if row.withdrawn:
        return SourceNow(became=Became.WITHDRAWN, why=row.reason, by=by)
    if str(row.version) == accepted.source_version:
        return STANDS
    return SourceNow(became=Became.AMENDED, term=term_of(row), why=row.reason, by=by)
