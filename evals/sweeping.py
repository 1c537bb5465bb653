"""Whether a sweep takes longer where many runs have ended."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from django.db import connection

from evals.figures import Figure
from evals.people import build_house
from runs import recovery

# Open runs whose time has not come, and one in three that a worker holds: the sweep looks at each and wakes none.
_COPY = """
INSERT INTO runs_run SELECT (jsonb_populate_record(r, jsonb_build_object('id', %(prefix)s || upper(to_hex(k)),
    'lineage', %(prefix)s || upper(to_hex(k)), 'start_key', %(prefix)s || k, 'state', %(state)s::text,
    'wake_at', CASE WHEN %(open)s THEN now() + CASE WHEN k %% 3 = 0 THEN interval '-1 h' ELSE interval '1 h' END END,
    'lease_until', CASE WHEN %(open)s AND k %% 3 = 0 THEN now() + interval '1 h' END))).*
FROM runs_run r, generate_series(1, %(number)s) k WHERE r.id = %(like)s
"""


def measure(*, finished: int = 100_000, opened: int = 1000, times: int = 31) -> Iterator[Figure]:
    """The fastest sweep with the finished runs beside the open ones, over that with the open ones alone.

    The two cannot take turns, so the medians would compare what else the machine did in the meantime.
    """
    like = build_house().started(steps=1).pk
    _copy(like, "run_OPEN", state="executing", number=opened)
    alone = _sweep(times)
    _copy(like, "run_DONE", state="succeeded", number=finished)
    beside = _sweep(times)
    yield Figure(name="sweep_growth_ratio", value=beside / alone, unit="x", target=1.2)
    yield Figure(name="sweep_ms", value=1000 * beside, unit="ms")


def _copy(like: str, prefix: str, *, state: str, number: int) -> None:
    """Copies of one run's row, and fresh statistics, as autovacuum would make them."""
    values: dict[str, str | int | bool] = {
        "like": like, "prefix": prefix, "state": state, "open": state == "executing", "number": number,
    }  # fmt: skip
    with connection.cursor() as cursor:
        # Rows like one that is there need no check of their foreign keys, which takes longer than all the rest.
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(_COPY, values)
        cursor.execute("RESET session_replication_role")
        cursor.execute("VACUUM ANALYZE runs_run")


def _sweep(times: int) -> float:
    """Seconds of a sweep. A worker that serves the runs is announced, so that none is handed to a person.

    What is asked for is the time of its queries, so nothing waits for the disk.
    """
    found = []
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
    for _ in range(times):
        recovery.announce("bench")
        began = perf_counter()
        recovery.sweep()
        found.append(perf_counter() - began)
    with connection.cursor() as cursor:
        cursor.execute("RESET synchronous_commit")
    return min(found)
