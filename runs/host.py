"""This process and this host, as a send records them: so that a sender can later be known to be dead."""

from __future__ import annotations

import os
import socket
import time
from datetime import timedelta
from functools import cache
from pathlib import Path

from runs.machine.events import Sender

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


@cache
def boot_id() -> str:
    """The same for every process that sees the same pids since this host started, another after each start."""
    if not _BOOT.exists():
        return f"{socket.gethostname()}@{int(time.time() - time.monotonic()) // 60}"
    # Containers share the boot and have pids of their own: a pid means something only within its namespace.
    return f"{_BOOT.read_text().strip()}/{os.readlink(_NAMESPACE)}"


def uptime() -> timedelta:
    """A clock that never jumps and counts while the machine sleeps; comparable within one `boot_id`."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return timedelta(seconds=time.clock_gettime(clock))


def _started(pid: int) -> str:
    """When a process started, in ticks since the boot: with boot and pid it names one process for ever.

    Empty where there is no such process, or only its corpse.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]


def gone(earlier: Sender) -> bool:
    """Whether that sender is known to be dead: it ran on this boot of this host, and is not here any more."""
    if earlier.boot != boot_id() or not earlier.started:
        return False
    return _started(earlier.pid) != earlier.started


@cache
def _own_start(pid: int) -> str:
    return _started(pid)


def sender() -> Sender:
    """This process, now."""
    pid = os.getpid()
    return Sender(
        host=socket.gethostname(), boot=boot_id(), pid=pid, started=_own_start(pid), uptime=uptime()
    )


def worker_name() -> str:
    """What this process calls itself in leases and logs."""
    return f"{socket.gethostname()}:{os.getpid()}"
