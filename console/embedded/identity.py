"""Which process is ours. A pid alone does not say: pids are used again, in a restarted container at once."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

TOKEN = "HANDOFF_CHILD"


@dataclass(frozen=True, slots=True)
class Identity:
    """A process group we started: its leader's pid, when that began, and the token in its environment."""

    pid: int
    started: str
    token: str

    @classmethod
    def read(cls, file: Path) -> Identity | None:
        """The identity in a record, or None where there is none or it was not written to its end."""
        try:
            return cls(**json.loads(file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, file: Path) -> None:
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(file)

    def alive(self) -> bool:
        """True while that very process runs. A zombie, or another process with the same pid, is not it."""
        return started(self.pid) == self.started

    def members(self) -> list[psutil.Process]:
        """The living processes of the group. One whose leader died is known by its token."""
        if self.alive():
            return list(_group(self.pid))
        return [process for process in _group(self.pid) if _token(process) == self.token]

    def end(self, *, by: signal.Signals, grace: float) -> None:
        """Ask the leader to stop, wait `grace` seconds, then end what is left of the group for good."""
        if self.alive():
            send(self.pid, by)
            wait_until(lambda: not self.alive(), seconds=grace)
        for process in self.members():
            send(process.pid, signal.SIGKILL)
        wait_until(lambda: not self.members(), seconds=5)


def started(pid: int) -> str | None:
    """A text that no other process of this machine has had, or None where no such process lives."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return _boot_ticks(pid) if sys.platform == "linux" else str(process.create_time())
    except (psutil.Error, OSError):
        return None


def _boot_ticks(pid: int) -> str:
    """Boot and clock ticks since: unlike the wall clock's time, these do not move when the clock is set."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}:{ticks}"


def _group(pid: int) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == pid and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (psutil.Error, OSError):
            continue


def _token(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(TOKEN)
    except (psutil.Error, OSError):
        return None


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal; a process that is gone already is fine."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def wait_until(true: Callable[[], object], *, seconds: float, every: float = 0.02) -> bool:
    """Poll until `true()` holds; False where it still did not after so many seconds."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() >= deadline:
            return False
        time.sleep(every)
    return True
