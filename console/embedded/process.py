"""One child process: started in a session of its own, dying with its parent, ended as a group."""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from console.embedded.home import Home
from console.embedded.identity import TOKEN, Identity, started, wait_until

PR_SET_PDEATHSIG = 1
LONGEST_LOG = 20_000_000


class DidNotStart(Exception):
    """A process ended, or did not become ready in time: the message names the log file that says why."""


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How to run something. `ready` is asked until it says True; `prepare` runs before every start."""

    name: str
    argv: Sequence[str]
    ready: Callable[[Child], bool]
    environment: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], None] = _nothing
    stop_by: signal.Signals = signal.SIGTERM
    grace: float = 10.0
    patience: float = 60.0
    pass_fds: Sequence[int] = ()
    # Whom root gives the process to.
    user: int | None = None
    group: int | None = None


class Child:
    """A program under a home: at most one process of it at a time, recorded in `run/<name>.json`."""

    def __init__(self, program: Program, home: Home) -> None:
        self.program = program
        self.home = home
        self.process: subprocess.Popen[bytes] | None = None
        self.identity: Identity | None = None

    @property
    def record(self) -> Path:
        return self.home.run / f"{self.program.name}.json"

    @property
    def log(self) -> Path:
        return self.home.log / f"{self.program.name}.log"

    @property
    def ready_file(self) -> Path:
        """Where a process that can tell writes its pid once it works."""
        return self.home.run / f"{self.program.name}.ready"

    def start(self) -> None:
        """Start it. A process that an earlier, killed parent left behind is ended first."""
        self.end_leftover()
        self.ready_file.unlink(missing_ok=True)
        self.program.prepare()
        token = secrets.token_hex(8)
        self.process = self._spawn(token)
        self.identity = Identity(self.process.pid, started(self.process.pid) or "gone", token)
        self.identity.write(self.record)

    def _spawn(self, token: str) -> subprocess.Popen[bytes]:
        ours = {TOKEN: token, "HANDOFF_READY_FILE": str(self.ready_file)}
        self._turn_log()
        with self.log.open("ab") as out:
            return subprocess.Popen(
                self.program.argv,
                env={**os.environ, **self.program.environment, **ours},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                # A terminal's Ctrl-C must reach the supervisor only, which stops things in their order.
                start_new_session=True,
                preexec_fn=die_with_parent(self.program.stop_by),
                pass_fds=self.program.pass_fds,
                user=self.program.user,
                group=self.program.group,
                extra_groups=None if self.program.user is None else [],
            )

    def _turn_log(self) -> None:
        """Keep one older log file, so that they do not grow without end."""
        if self.log.exists() and self.log.stat().st_size > LONGEST_LOG:
            self.log.replace(self.log.with_suffix(".old.log"))

    def end_leftover(self) -> None:
        """End the process of an earlier parent, known by more than its pid."""
        if self.process is None and (left := Identity.read(self.record)):
            left.end(by=self.program.stop_by, grace=self.program.grace)
            self.record.unlink(missing_ok=True)

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def wait_ready(self, *, seconds: float | None = None) -> None:
        """Wait until it works. Raises `DidNotStart` where it ends first or takes longer than its patience."""
        limit = self.program.patience if seconds is None else seconds
        came = wait_until(lambda: not self.running() or self.program.ready(self), seconds=limit, every=0.05)
        if not came or not self.running():
            code = self.process.returncode if self.process and not self.running() else None
            ended = "is not ready" if code is None else f"ended with {code}"
            raise DidNotStart(f"{self.program.name} {ended}; its log is {self.log}\n{self._last_lines()}")

    def _last_lines(self) -> str:
        """The end of the log: most often it says at once what is wrong."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-8:])

    def announced(self) -> bool:
        """True once the process wrote its own pid into the ready file."""
        try:
            return self.process is not None and int(self.ready_file.read_text() or 0) == self.process.pid
        except (OSError, ValueError):
            return False

    def stop(self, *, by: signal.Signals | None = None) -> None:
        """Ask it to stop, give it its grace, end the rest of its group."""
        if self.identity and self.process:
            self.process.poll()
            self.identity.end(by=by or self.program.stop_by, grace=self.program.grace)
        self.reap()

    def kill(self) -> None:
        """SIGKILL for the whole group at once, as a machine that fails would."""
        if self.process and self.running():
            os.killpg(self.process.pid, signal.SIGKILL)
        self.reap()

    def reap(self) -> None:
        """Collect a process that ended, end what it left of its group, remove the record."""
        if self.process is None:
            return
        self.process.wait()
        if self.identity:
            self.identity.end(by=signal.SIGKILL, grace=5)
        self.record.unlink(missing_ok=True)
        self.process = None
        self.identity = None


def die_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """What the new process calls before it becomes the program: ask Linux for a signal when the parent dies.

    Elsewhere there is nothing like it; the next start then finds the leftover by its record.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return ask
