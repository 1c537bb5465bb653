"""A run's hash chain since this process last found it whole: what a revalidation looks at.

A worker that comes to a run for the first time looks at all of it. What was changed afterwards before the event that it
remembers is found by `manage.py rereduce --check`, by the page of raw events, and by every other process.
"""

from __future__ import annotations

from threading import Lock
from typing import Final

from runs.ledger import Link, verified_chain

#: Runs that are remembered; the one that was looked at longest ago is forgotten first.
REMEMBERED: Final = 10_000
_lock = Lock()
_whole: dict[str, Link] = {}


def chain_problem_since(run_id: str) -> str:
    """What is wrong with the chain since it was last found whole here, or nothing."""
    known = _whole.get(run_id)
    problem, last = verified_chain(run_id, since=known)
    if problem and known:
        # What is remembered may be of a history that a restore of the database ended: all of this one decides.
        problem, last = verified_chain(run_id)
    if not problem:
        _remember(run_id, last)
    return problem


def _remember(run_id: str, last: Link) -> None:
    with _lock:
        _whole.pop(run_id, None)
        _whole[run_id] = last
        if len(_whole) > REMEMBERED:
            del _whole[next(iter(_whole))]
