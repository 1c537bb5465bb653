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


@cache
def boot_id() -> str:
    """The same for every process since this host started, another after each start."""
    if _BOOT.exists():
        return _BOOT.read_text().strip()
    return f"{socket.gethostname()}@{int(time.time() - time.monotonic()) // 60}"


def uptime() -> timedelta:
    """A clock that never jumps and counts while the machine sleeps; comparable within one `boot_id`."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return timedelta(seconds=time.clock_gettime(clock))


@cache
def _started(pid: int) -> str:
    """When this process started, in ticks since the boot: with boot and pid it names one process for ever."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.read_text().rpartition(")")[2].split()[19] if stat.exists() else ""


def sender() -> Sender:
    """This process, now."""
    pid = os.getpid()
    return Sender(host=socket.gethostname(), boot=boot_id(), pid=pid, started=_started(pid), uptime=uptime())


def worker_name() -> str:
    """What this process calls itself in leases and logs."""
    return f"{socket.gethostname()}:{os.getpid()}"
