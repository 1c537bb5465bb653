"""A polite end, however it is asked for, is Ctrl-C once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

POLITE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let every polite end be the same as Ctrl-C."""
    before = {number: signal.signal(number, _interrupt) for number in POLITE}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: object) -> None:
    """Interrupt once: a terminal and `make` may both pass Ctrl-C on, and stopping has to come to its end."""
    ignore_signals()
    raise KeyboardInterrupt


def ignore_signals() -> None:
    for number in POLITE:
        signal.signal(number, signal.SIG_IGN)
