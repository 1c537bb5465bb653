"""How far an upload is, while its one transaction is still open and no table can tell.

Kept in this process only: it is a courtesy to the person who waits. Where another process is asked, or after a
restart, there is simply nothing to say.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from examples.refunds.starting import Told

_lock = threading.Lock()
_done: dict[tuple[str, UUID], tuple[int, int]] = {}


@contextmanager
def watched(person: str, submission: UUID) -> Iterator[Told]:
    """For the length of the block `of` knows how many rows of how many are done."""
    key = (person, submission)

    def told(done: int, total: int) -> None:
        with _lock:
            _done[key] = (done, total)

    told(0, 0)
    try:
        yield told
    finally:
        with _lock:
            _done.pop(key, None)


def of(person: str, submission: UUID) -> tuple[int, int] | None:
    """Rows done and rows in all, for the person who sent the form; None where nothing is under way here."""
    with _lock:
        return _done.get((person, submission))
