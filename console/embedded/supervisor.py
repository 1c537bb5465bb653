"""One process that owns all others: starts them in order, starts again what dies, stops them in reverse."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from console.embedded.control import Answer, ControlSocket, Refused, Request
from console.embedded.holding import end_leftovers, locked
from console.embedded.home import Home
from console.embedded.postgres_programs import NoPostgres
from console.embedded.process import Child, DidNotStart, die_with_parent
from console.embedded.signals import ignore_signals, signals_interrupt
from console.embedded.steps import Once, Step, Together

Say = Callable[[str], None]

SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
# A process that lived this long has not failed to start.
LIVED = 20.0
TURN = 0.1


def _say_nothing(_line: str) -> None:
    return None


@dataclass(slots=True)
class Managed:
    """A child, whether it is to run, and how it fared."""

    child: Child
    wanted: bool = True
    failures: int = 0
    since: float = 0.0
    again_at: float | None = None
    said_ready: bool = True

    @property
    def name(self) -> str:
        return self.child.program.name


class Supervisor:
    """Runs steps under a home. `facts` are told to whoever asks for the status."""

    def __init__(self, home: Home, *, say: Say, facts: Mapping[str, Any]) -> None:
        self.home = home
        self.say = say
        self.facts = facts
        self.managed: list[Managed] = []
        self.control: ControlSocket
        self.leaving = False

    def run(self, steps: Sequence[Step], *, stay: bool = True, fresh: bool = False) -> None:
        """Do the steps, watch until a signal or `down` comes (unless not to `stay`), stop what was started.

        `fresh` drops all data first. Not to `stay` leaves the last word to the last step. Raises `AlreadyRunning`,
        and `DidNotStart` where a step fails.
        """
        self.home.make()
        with ExitStack() as stack:
            stack.enter_context(locked(self.home))
            stack.callback(self.home.leave)
            if fresh:
                end_leftovers(self.home)
                self.home.forget()
            stack.enter_context(signals_interrupt())
            self.control = ControlSocket(self.home, self.answer)
            stack.callback(self.control.close)
            stack.callback(self.stop_all)
            try:
                for step in steps:
                    self._begin(step)
                while stay and not self.leaving:
                    self._turn()
                if not stay:
                    self.say = _say_nothing
            except KeyboardInterrupt:
                self.say("Stopping; the data stays.")

    def _begin(self, step: Step) -> None:
        began = time.monotonic()
        if isinstance(step, Once):
            self._do(step)
        else:
            self._launch(step)
        if step.done:
            self.say(f"{step.name:<10} {step.done}, {time.monotonic() - began:.1f} s")

    def _launch(self, step: Together) -> None:
        children = [Child(program, self.home) for program in step.programs]
        for child in children:
            self.managed.append(Managed(child, since=time.monotonic()))
            child.start()
        for child in children:
            child.wait_ready()

    def _do(self, step: Once) -> None:
        """Do it, and look after the others meanwhile: the command may ask for one of them to be stopped."""
        if step.call:
            step.call()
            return
        process = subprocess.Popen(
            step.argv,
            env={**os.environ, **step.environment},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        try:
            while process.poll() is None and not self.leaving:
                self._turn()
        finally:
            process.terminate()
            code = process.wait()
        if code:
            raise DidNotStart(f"{step.name} failed with {how(code)}; what it wrote above says why")

    def _turn(self) -> None:
        """Answer one request if there is one, and look after every process."""
        self.control.serve_for(TURN)
        for managed in self.managed:
            self._look_after(managed)

    def _look_after(self, managed: Managed) -> None:
        child = managed.child
        if not managed.wanted:
            return
        if child.running():
            if not managed.said_ready and child.program.ready(child):
                managed.said_ready = True
                self.say(f"{managed.name:<10} runs again")
        elif managed.again_at is None:
            self._plan_restart(managed)
        elif time.monotonic() >= managed.again_at:
            self._start_again(managed)

    def _plan_restart(self, managed: Managed) -> None:
        code = managed.child.process.returncode if managed.child.process else None
        managed.child.reap()
        now = time.monotonic()
        managed.failures = 1 if now - managed.since > LIVED else managed.failures + 1
        pause = min(SHORTEST_PAUSE * 2 ** (managed.failures - 1), LONGEST_PAUSE)
        managed.again_at = now + pause
        self.say(
            f"{managed.name:<10} ended ({how(code)}), starts again in {pause:.1f} s; log: {managed.child.log}"
        )

    def _start_again(self, managed: Managed) -> None:
        managed.again_at, managed.since, managed.said_ready = None, time.monotonic(), False
        try:
            managed.child.start()
        except (NoPostgres, OSError) as error:
            self.say(f"{managed.name:<10} did not start: {error}")

    def stop_all(self) -> None:
        """Stop everything, the last started first."""
        ignore_signals()
        for managed in reversed(self.managed):
            managed.wanted = False
            if managed.child.process is not None:
                managed.child.stop()
                self.say(f"{managed.name:<10} stopped")

    # What can be asked.

    def answer(self, request: Request) -> Answer:
        """Do what a request asks and say how things are. Raises `Refused`."""
        action, name = request.get("action"), str(request.get("name"))
        if action == "down":
            self.leaving = True
        elif action in {"stop", "start", "kill", "restart"}:
            self._act(str(action), self._named(name), keep_down=bool(request.get("keep_down")))
        elif action != "status":
            raise Refused(
                f"There is no action {action!r}; there are: status, start, stop, restart, kill, down"
            )
        return self.status()

    def _named(self, name: str) -> Managed:
        for managed in self.managed:
            if managed.name == name:
                return managed
        raise Refused(f"There is no process {name!r}; there are: {', '.join(m.name for m in self.managed)}")

    def _act(self, action: str, managed: Managed, *, keep_down: bool) -> None:
        if action == "kill":
            managed.wanted = not keep_down
            managed.child.kill()
        if action in {"stop", "restart"}:
            managed.wanted = False
            managed.child.stop()
        self.say(f"{managed.name:<10} asked to {action}")
        if action in {"start", "restart"}:
            self._start_on_request(managed)

    def _start_on_request(self, managed: Managed) -> None:
        managed.wanted, managed.failures = True, 0
        try:
            if not managed.child.running():
                managed.child.reap()
                managed.again_at, managed.since = None, time.monotonic()
                managed.child.start()
            managed.child.wait_ready()
        except (DidNotStart, NoPostgres) as error:
            raise Refused(str(error)) from error

    def status(self) -> Answer:
        """What runs, under which pid, since when, and whether it works."""
        return {
            "home": str(self.home.root),
            **self.facts,
            "processes": {m.name: _told(m) for m in self.managed},
        }


def _told(managed: Managed) -> Answer:
    child = managed.child
    running = child.running()
    return {
        "pid": child.process.pid if child.process and running else None,
        "state": "running" if running else "waiting" if managed.wanted else "stopped",
        "ready": running and child.program.ready(child),
    }


def how(code: int | None) -> str:
    """How a process ended, in words."""
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return "killed" if code is None else f"code {code}"
