"""How long it takes to tell every run of a withdrawal and to count its impact, and how much memory that takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median
from time import perf_counter
from uuid import uuid4

from django.db import connection, connections

from evals.figures import Figure
from evals.people import House, build_house
from runs import actions, constrained, engine
from runs.clock import database_now
from runs.models import Run, Statement
from runs.outbox import MARKERS
from runs.sources import held

MEGABYTE = 1024 * 1024
# Copies of one run that waits for approval: its row, log, plan, constraints and request, under ids of their own. Their
# chains are not whole, which marking does not look at.
_COPIES = """
CREATE TEMP TABLE bench_copy ON COMMIT DROP AS
    SELECT 'run_HELD' || upper(to_hex(k)) AS run, gen_random_uuid() AS request FROM generate_series(1, %(number)s) k;
INSERT INTO runs_run SELECT (jsonb_populate_record(r, jsonb_build_object(
    'id', c.run, 'lineage', c.run, 'start_key', c.run))).* FROM runs_run r, bench_copy c WHERE r.id = %(run)s;
INSERT INTO runs_event SELECT (jsonb_populate_record(e, jsonb_build_object('run_id', c.run,
    'body', replace(replace(e.body, %(run)s, c.run), %(request)s, c.request::text)))).*
    FROM runs_event e, bench_copy c WHERE e.run_id = %(run)s;
INSERT INTO runs_planversion SELECT (jsonb_populate_record(p, jsonb_build_object('run_id', c.run))).*
    FROM runs_planversion p, bench_copy c WHERE p.run_id = %(run)s;
INSERT INTO runs_constraint SELECT (jsonb_populate_record(x, jsonb_build_object('run_id', c.run))).*
    FROM runs_constraint x, bench_copy c WHERE x.run_id = %(run)s;
INSERT INTO approvals_request SELECT (jsonb_populate_record(q, jsonb_build_object('id', c.request,
    'subject', c.run || ':1'))).* FROM approvals_request q, bench_copy c WHERE q.id = %(request)s::uuid;
"""


def measure(*, runs: int = 10_000, times: int = 5) -> Iterator[Figure]:
    """Seconds until all are told, the most memory that Python took for it, and milliseconds of the impact."""
    house = build_house()
    statement = _stated(house)
    run = house.started(steps=3)
    engine.advance(run.pk)
    _copy(run, runs - 1)
    yield Figure(name=f"impact_{runs}_ms", value=1000 * _impact(statement, times), unit="ms", target=200)
    Statement.objects.create(
        tenant_id=statement.tenant_id, kind=statement.kind, ref=statement.ref, version=2, name=statement.name,
        text=statement.text, by=statement.by, reason="to measure", withdrawn=True, at=database_now(),
        agent=statement.agent,
    )  # fmt: skip
    tracemalloc.start()
    told = actions.mark_constraints(200)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    began = perf_counter()
    told += _marked_at_once()
    seconds = (perf_counter() - began) * runs / max(told - 200, 1)
    assert told == runs, f"{told} of {runs} were told"
    yield Figure(name=f"withdrawal_{runs}_told_s", value=seconds, unit="s", target=10)
    yield Figure(name="withdrawal_memory_mb", value=most / MEGABYTE, unit="MB", target=50)


def _marked_at_once() -> int:
    """As many workers as are told of a change, each a process of its own."""
    connections.close_all()
    with ProcessPoolExecutor(MARKERS, mp_context=get_context("fork")) as workers:
        return sum(workers.map(_marked, range(MARKERS)))


def _marked(_: int) -> int:
    told = 0
    while done := actions.mark_constraints(1000):
        told += done
    return told


def _stated(house: House) -> Statement:
    return Statement.objects.create(
        tenant=house.agent.tenant, kind="policy", ref=f"{held.PREFIX}{uuid4().hex[:10]}", version=1, name="bench",
        text="Do nothing at night.", by=house.operator, reason="to measure", at=database_now(), agent=house.agent,
    )  # fmt: skip


def _copy(run: Run, number: int) -> None:
    """Copies of one run, and fresh statistics, as autovacuum would make them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id::text FROM approvals_request WHERE subject = %s", [f"{run.pk}:1"])
        request = cursor.fetchone()[0]
        # Rows like one that is there need no check of their foreign keys, which takes longer than all the rest.
        cursor.execute("SET session_replication_role = replica")
        for statement in _COPIES.replace(" ON COMMIT DROP", "").strip().split(";\n"):
            cursor.execute(statement, {"number": number, "run": run.pk, "request": request})
        cursor.execute("RESET session_replication_role")
        cursor.execute("DROP TABLE bench_copy")
        for table in ("runs_run", "runs_event", "runs_constraint", "runs_planversion", "approvals_request"):
            cursor.execute(f"VACUUM ANALYZE {table}")


def _impact(statement: Statement, times: int) -> float:
    found = []
    for _ in range(times):
        began = perf_counter()
        constrained.impact(tenant_id=statement.tenant_id, ref=statement.ref)
        found.append(perf_counter() - began)
    return median(found)
