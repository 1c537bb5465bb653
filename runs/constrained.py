"""Which open runs rest on a constraint that is held here: what its end would end, and how many were told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from runs.models import CLOSED, Statement

# A plan that was carried out, and what a run undoes, rest on nothing any more.
_RESTS = """
FROM runs_constraint c JOIN runs_run r ON r.id = c.run_id
LEFT JOIN runs_planversion p ON p.run_id = r.id AND p.version = r.plan_version AND p.voided_seq IS NULL
    AND coalesce(nullif(r.before, ''), r.state) <> 'planning'
LEFT JOIN approvals_request q ON q.tenant_id = r.tenant_id AND q.subject = r.id || ':' || p.version
    AND q.state IN ('pending', 'valid')
WHERE c.tenant_id = %(tenant)s AND c.source_ref = %(ref)s AND c.withdrawn_seq IS NULL
    AND r.direction = 'forward' AND NOT r.state = ANY(%(closed)s)
"""
_SUM = f"""
SELECT count(*), count(p.version), count(*) FILTER (WHERE q.state = 'pending'),
    count(*) FILTER (WHERE q.state = 'valid'),
    md5(coalesce(string_agg(concat_ws(':', r.id, p.version, q.state), ',' ORDER BY r.id), ''))
{_RESTS}
"""
_LIST = f"""
SELECT r.id, c.number, r.goal, r.state, p.version, q.state {_RESTS}
ORDER BY r.id LIMIT %(most)s OFFSET %(skip)s
"""
_TOLD = """
SELECT x.latest, count(*) FILTER (WHERE x.told), count(*) FROM (
    SELECT l.id AS latest, r.state, c.withdrawn_seq IS NOT NULL OR c.source_version = l.version::text
        OR c.amended_version = l.version::text AS told
    FROM runs_statement l
    JOIN runs_constraint c ON c.tenant_id = l.tenant_id AND c.source_ref = l.ref
    JOIN runs_run r ON r.id = c.run_id
    WHERE l.id = ANY(%(latest)s)
) x WHERE x.told OR NOT x.state = ANY(%(closed)s)
GROUP BY x.latest
"""


@dataclass(frozen=True, kw_only=True)
class Rest:
    """An open run that accepted the constraint as C-`number`, its plan in force, and what people were asked or said."""

    run: str
    number: int
    goal: str
    state: str
    plan: int | None
    request: str | None


@dataclass(frozen=True, kw_only=True)
class Impact:
    """All that loses its validity where the constraint ends or changes, in exact numbers."""

    runs: int
    plans: int
    pending: int
    valid: int
    digest: str  #: of the list; equal only for the same runs, plans and requests

    @property
    def approvals(self) -> int:
        """Requests and approvals."""
        return self.pending + self.valid


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How many of the runs concerned were told so far."""

    told: int
    runs: int


def impact(*, tenant_id: UUID, ref: str) -> Impact:
    """Over all open runs of the tenant, now."""
    runs, plans, pending, valid, digest = _rows(_SUM, tenant_id, ref)[0]
    return Impact(runs=runs, plans=plans, pending=pending, valid=valid, digest=digest)


def rests(*, tenant_id: UUID, ref: str, most: int, skip: int = 0) -> list[Rest]:
    """A part of the list, in the order of the runs' ids."""
    rows = _rows(_LIST, tenant_id, ref, most=most, skip=skip)
    return [
        Rest(run=run, number=number, goal=goal, state=state, plan=plan, request=request)
        for run, number, goal, state, plan, request in rows
    ]


def progress(latest: Sequence[Statement]) -> dict[int, Progress]:
    """By the version's id, counted from the rows of the runs; each is the version that counts. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_TOLD, {"latest": [row.pk for row in latest], "closed": CLOSED})
        return {pk: Progress(told=told, runs=runs) for pk, told, runs in cursor.fetchall()}


def _rows(sql: str, tenant_id: UUID, ref: str, **more: str | int) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, {"tenant": tenant_id, "ref": ref, "closed": CLOSED, **more})
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found
