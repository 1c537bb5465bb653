"""Workers of one process that die at any point and leave nothing behind but what was committed, and a time to pass.

A death is an exception that nothing catches. What a process would still do on its way out does not happen: no lease
is given back, nobody is told. A SIGKILL of a real one is tests/matrix.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from runs import crash, engine, host, recovery
from runs.actions import children, relatives, starting, writing
from runs.ledger import append
from runs.machine import events as e
from runs.machine.state import RunState
from tests.fixtures.clock import Clock

#: No life of a test needs so many events in one go: a run that makes more is one that does not end.
ENDLESS: Final = 200


class Died(BaseException):
    """The worker is gone: nothing in this process may catch it."""


class _Time:
    """The host's clock, which never jumps, and on which a slow machine changes nothing: only what is passed counts."""

    CLOCK_BOOTTIME = CLOCK_MONOTONIC = time.CLOCK_MONOTONIC

    def __init__(self) -> None:
        self.passed = time.clock_gettime(time.CLOCK_MONOTONIC)

    def clock_gettime(self, clock: int) -> float:
        return self.passed


@dataclass
class Workers:
    """Each call of `advance` is a worker of its own."""

    clock: Clock
    time: _Time = field(default_factory=_Time)
    dead: set[int] = field(default_factory=set)
    number: int = 0  #: who works now
    events: int = 0  #: made since somebody began to work
    made: int = 0
    dies_in: int | None = None  #: after so many points more
    dying: bool = False
    at: str = ""
    reached: list[str] = field(default_factory=list)
    appended: Callable[[RunState], None] = lambda _: None

    def advance(self, run: str, *, dies_in: int | None = None) -> int:
        """A new worker moves the run, and dies after `dies_in` points; how many events that made."""
        self.made += 1
        before, self.number = self.number, self.made
        self.dies_in, self.dying, self.events = dies_in, False, 0
        try:
            return engine.advance(run)
        except Died:
            self.dead.add(self.number)
            return 0
        finally:
            self.dies_in, self.dying, self.number = None, False, before

    def reach(self, run: str, point: str) -> None:
        """A point at which a worker can die."""
        self.reached.append(point)
        if self.dies_in is None:
            return
        self.dies_in -= 1
        if self.dies_in < 0:
            self.dying, self.at = True, point
            raise Died(point)

    def reach_each(self, run: str, when: str, events: Sequence[object]) -> None:
        self.events += len(events) if when == "before" else 0
        if self.events > ENDLESS:
            made = "+".join(type(event).__name__ for event in events)
            pytest.fail(f"{run} goes on for ever: {made}")
        self.reach(run, f"{when} {'+'.join(type(event).__name__ for event in events)}")

    def passes(self, length: timedelta) -> None:
        """Time passes, for the database and for every host."""
        self.time.passed += length.total_seconds()
        self.clock.move(length)

    def steps(self, by: timedelta) -> None:
        """The database's clock jumps; the hosts' do not."""
        self.clock.move(by)


@contextmanager
def working(clock: Clock) -> Iterator[Workers]:
    """Workers that die, until the block ends."""
    made = Workers(clock)
    own_sender, own_release, own_tell = host.sender, recovery._release, relatives._tell

    def sender() -> e.Sender:
        return replace(own_sender(), pid=made.number)

    def release(*args: Any) -> None:
        if not made.dying:
            own_release(*args)

    def tell(run: str, decider: Callable[[RunState], Any]) -> None:
        if not made.dying:
            made.reach(run, "before telling")
            own_tell(run, decider)

    def appending(*args: Any, **more: Any) -> RunState:
        new = append(*args, **more)
        made.appended(new)
        return new

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "time", made.time)
        patch.setattr(engine, "sender", sender)
        patch.setattr(engine, "gone", lambda sender: sender.pid in made.dead)
        patch.setattr(recovery, "_release", release)
        patch.setattr(relatives, "_tell", tell)
        patch.setattr(crash, "reach", made.reach)
        patch.setattr(crash, "reach_each", made.reach_each)
        for module in (children, starting, writing):
            patch.setattr(module, "append", appending)
        yield made
