"""Named points at which a test, and only a test, may kill this process.

Armed by the environment of a worker in the test profile: a folder in which a file named `RUN@POINT` asks for one
SIGKILL there. Everywhere else `reach` is one comparison.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

VARIABLE: Final = "HANDOFF_CRASH_POINTS"
_FOLDER = os.environ.get(VARIABLE) if os.environ.get("HANDOFF_PROFILE") == "test" else None

#: Beside these, `before TYPE` and `after TYPE` stand for an append that has an event of that type.
CLAIMED: Final = "claimed"
BEFORE_CALL: Final = "before call"
AFTER_CALL: Final = "after call"
SUMMARY_MADE: Final = "summary made"
SUMMARY_WRITTEN: Final = "summary written"
SUMMARY_KEPT: Final = "summary kept"


def reach(run_id: str, point: str) -> None:
    """Die here if a test asked for it, once."""
    if _FOLDER is not None:
        _die_if_asked(Path(_FOLDER) / f"{run_id}@{point}")


def reach_each(run_id: str, when: str, events: Sequence[object]) -> None:
    """Die here if a test asked for it at an append of one of these events."""
    if _FOLDER is not None:
        for event in events:
            reach(run_id, f"{when} {type(event).__name__}")


def _die_if_asked(asked: Path) -> None:
    try:
        asked.unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
