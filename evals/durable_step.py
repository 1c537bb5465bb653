"""How much longer one durable step takes than two bare INSERTs of the same sizes on the same connection.

A durable step is all that stands between two calls of a tool: the receipt of the one, the loop, the send of the
next, with canonical JSON, key, rights and cheap checks. Receipt and send are one statement and one commit, the floor
is two of each: where a commit is slow, the ratio is below one. The two INSERTs are made inside the tool's call, so that
both are measured under the same conditions, one after the other.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, process_time

import psycopg
from django.db import connection

from evals.agent import ARGUMENTS_BYTES, NOTHING, RESULT_BYTES
from evals.figures import Figure
from evals.people import build_house
from runs import engine
from runs.models import Run

_TABLE = "CREATE TABLE IF NOT EXISTS bench_floor (id bigserial PRIMARY KEY, body text NOT NULL)"
_INSERT = "INSERT INTO bench_floor (body) VALUES (%s)"
_BODIES = ("a" * ARGUMENTS_BYTES, "r" * RESULT_BYTES)


@dataclass
class Stopwatch:
    """Seconds of each step, how many of them this process computed, and seconds of the INSERTs between each two."""

    steps: list[float] = field(default_factory=list)
    computed: list[float] = field(default_factory=list)
    floors: list[float] = field(default_factory=list)
    left: float | None = None
    used: float = 0.0

    def between(self) -> None:
        """Called inside each call of the tool: a step has just ended, the next begins when this returns."""
        entered = perf_counter()
        if self.left is not None:
            self.steps.append(entered - self.left)
            self.computed.append(process_time() - self.used)
        # psycopg's own cursor, on the connection that Django gives to everything here.
        with psycopg.Cursor(connection.connection) as cursor:
            began = perf_counter()
            for body in _BODIES:
                cursor.execute(_INSERT, (body,), prepare=True)
        self.left = perf_counter()
        self.floors.append(self.left - began)
        self.used = process_time()


def measure(*, rounds: int = 8, runs: int = 10, steps: int = 25) -> Iterator[Figure]:
    """The ratio of the medians, the median of all rounds; and what it is the ratio of.

    A round is `runs` runs, each with as many steps that have one before them. The first round warms up.
    """
    _execute(_TABLE)
    house = build_house()
    _round([house.approved(steps=steps + 1) for _ in range(runs)])
    # The statistics that an installation has after its first day; without any, plans are made for empty tables.
    _execute("ANALYZE")
    watches = [_round([house.approved(steps=steps + 1) for _ in range(runs)]) for _ in range(rounds)]
    ratios = [median(w.steps) / median(w.floors) for w in watches]
    yield Figure(name="durable_step_ratio", value=median(ratios), unit="x", target=2.0)
    yield Figure(name="durable_step_us", value=1e6 * median(t for w in watches for t in w.steps), unit="us")
    yield Figure(
        name="durable_step_python_us", value=1e6 * median(t for w in watches for t in w.computed), unit="us"
    )
    yield Figure(name="two_inserts_us", value=1e6 * median(t for w in watches for t in w.floors), unit="us")


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _round(runs: list[Run]) -> Stopwatch:
    """Runs from their approval to their end."""
    watch = Stopwatch()
    NOTHING.between = watch.between
    gc.collect()
    try:
        for run in runs:
            watch.left = None
            engine.advance(run.pk)
    finally:
        NOTHING.between = lambda: None
    return watch
