"""Who has a home: one supervisor at a time."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from console.embedded.home import Home
from console.embedded.identity import Identity


class AlreadyRunning(Exception):
    """Another supervisor has this home: use it, or stop it first."""


def end_leftovers(home: Home) -> None:
    """End every process that a killed supervisor left in this home."""
    for record in home.run.glob("*.json"):
        if left := Identity.read(record):
            left.end(by=signal.SIGINT, grace=10)
        record.unlink()


@contextmanager
def locked(home: Home) -> Iterator[None]:
    """Hold the home for as long as this process lives. Raises `AlreadyRunning` where another does."""
    with (home.run / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise AlreadyRunning(
                f"Process {lock.read().strip() or 'unknown'} runs in {home.root} already; "
                "`manage.py ctl status` shows it, `manage.py ctl down` stops it"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def held(home: Home) -> bool:
    """True while a supervisor has this home."""
    try:
        with locked(home):
            return False
    except AlreadyRunning:
        return True
