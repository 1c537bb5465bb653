"""How fast a log is reduced, and how long it takes to load one."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter, process_time

from evals.figures import Figure
from evals.long_log import long_run
from evals.people import build_house
from runs.ledger import load, log
from runs.machine.events import Recorded
from runs.machine.evolve import reduce

SHORT = 60


def measure(*, length: int = 10_000, times: int = 9) -> Iterator[Figure]:
    """Decoded events per second of one core, in short runs and in a long one; a long run loaded and reduced.

    The program itself is left out of garbage collections, as it is in a worker (console.celery).
    """
    gc.collect()
    gc.freeze()
    house = build_house()
    long, short = long_run(house, length=length), long_run(house, length=min(SHORT, length))
    yield _speed("reduce_events_per_second", list(log(short)), length, times)
    yield _speed("reduce_long_events_per_second", list(log(long)), length, times)
    seconds = _median(perf_counter, lambda: load(long), times)
    yield Figure(name=f"load_{length}_ms", value=1000 * seconds, unit="ms", target=100)


def _speed(name: str, events: list[Recorded], number: int, times: int) -> Figure:
    again = max(number // len(events), 1)
    seconds = _median(process_time, lambda: [reduce(events) for _ in range(again)], times)
    value = len(events) * again / seconds
    return Figure(name=name, value=value, unit="1/s", target=200_000, at_most=False)


def _median(clock: Callable[[], float], work: Callable[[], object], times: int) -> float:
    """Seconds of the work, done a few times."""
    found = []
    for _ in range(times):
        gc.collect()
        began = clock()
        work()
        found.append(clock() - began)
    return median(found)
