"""The house of every run test, people with a browser, and a host whose clock goes on with the database's."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest

from runs import host
from tests.fixtures.clock import Clock
from tests.pages.conftest import house, sign_in, time_to_decide, world

__all__ = ["house", "sign_in", "time_to_decide", "world"]

Pass = Callable[[float], None]


@pytest.fixture
def passing(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Pass:
    """Let so many seconds pass, by every clock there is: a "not found" is then believed."""
    passed, boottime = 0.0, time.CLOCK_BOOTTIME

    def clock_gettime(_: int) -> float:
        return time.clock_gettime(boottime) + passed

    def let_pass(seconds: float) -> None:
        nonlocal passed
        passed += seconds
        clock.move(timedelta(seconds=seconds))

    monkeypatch.setattr(
        host,
        "time",
        SimpleNamespace(clock_gettime=clock_gettime, CLOCK_BOOTTIME=boottime, CLOCK_MONOTONIC=boottime),
    )
    return let_pass
