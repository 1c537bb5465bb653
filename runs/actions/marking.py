"""Telling runs what became of constraints that are held here: in batches, each a transaction, resumed from the rows.

A run that was not told yet is stopped by the source already; this only says so in its log, and asks a person.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from django.db import connection, transaction

from accounts.fence import fence_shared
from runs.actions.writing import write_each
from runs.clock import database_now
from runs.ledger import LogUnreadable, load
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.models import CLOSED, Run, Statement, Told
from runs.sources import held

log = logging.getLogger(__name__)
SYSTEM = e.Actor(e.ActorKind.SYSTEM, "constraints", "constraints")
BATCH = 100  #: runs of one transaction: so many logs are in memory at once
# The latest version of each that some run may not know yet.
_CHANGED = """
SELECT max(s.id) FROM runs_statement s WHERE s.version > 1 AND NOT EXISTS (
    SELECT 1 FROM runs_told t JOIN runs_statement o ON o.id = t.statement_id
    WHERE o.tenant_id = s.tenant_id AND o.ref = s.ref AND o.version >= s.version)
GROUP BY s.tenant_id, s.ref ORDER BY 1
"""
_DUE = """
SELECT c.run_id FROM runs_constraint c JOIN runs_run r ON r.id = c.run_id
WHERE c.tenant_id = %(tenant)s AND c.source_ref = %(ref)s AND c.withdrawn_seq IS NULL AND c.run_id > %(after)s
    AND (%(withdrawn)s OR (c.source_version <> %(version)s AND c.amended_version <> %(version)s))
    AND NOT r.state = ANY(%(closed)s)
ORDER BY c.run_id LIMIT %(most)s
"""


def mark_constraints(most: int) -> int:
    """Tell at most so many runs what became of a constraint that they accepted; how many were told.

    Bounded in memory by a batch. Killed halfway it goes on where it was: what is due is read from the runs' rows.
    """
    told = 0
    for statement in _changed():
        if told >= most:
            break
        told += _mark(statement, most - told)
    return told


def _changed() -> list[Statement]:
    with connection.cursor() as cursor:
        cursor.execute(_CHANGED)
        ids = [row[0] for row in cursor.fetchall()]
    return list(Statement.objects.filter(pk__in=ids).select_related("by").order_by("pk"))


def _mark(statement: Statement, most: int) -> int:
    told, left = 0, 0
    for due in _batches(statement):
        done = _told(statement, due[: most - told])
        told += done
        left += len(due) - done
        if told >= most:
            return told
    if not left:
        Told.objects.get_or_create(statement=statement, defaults={"at": database_now()})
    return told


def _batches(statement: Statement) -> Iterator[list[str]]:
    after = ""
    while due := _due(statement, after):
        yield due
        after = due[-1]


def _due(statement: Statement, after: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {
            "tenant": statement.tenant_id, "ref": statement.ref, "withdrawn": statement.withdrawn, "after": after,
            "version": str(statement.version), "closed": CLOSED, "most": BATCH,
        })  # fmt: skip
        return [row[0] for row in cursor.fetchall()]


def _told(statement: Statement, run_ids: list[str]) -> int:
    """One transaction; how many were told. One that somebody moves just now, or that cannot be read, is left."""
    with transaction.atomic():
        fence_shared(statement.tenant_id)
        rows = Run.objects.select_for_update(of=("self",), skip_locked=True).filter(pk__in=run_ids)
        return write_each(
            _moves(statement, list(rows.order_by("pk").values_list("pk", flat=True))), actor=SYSTEM
        )


def _moves(statement: Statement, run_ids: list[str]) -> Iterator[tuple[s.RunState, decide.Events]]:
    """What each of them is told, of those that can be read and do not know it."""
    for run_id in run_ids:
        try:
            state = load(run_id)
        except LogUnreadable:
            log.exception("the log cannot be reduced", extra={"run": run_id})
            continue
        mine = (c for c in state.constraints if c.term.source_ref == statement.ref)
        if events := decide.marked(state, {c.number: held.became(c.term, statement) for c in mine}):
            yield state, events
