"""How long to wait before the next try of whatever sends nothing or may be sent again: one rule for all of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

LONGEST: Final = timedelta(seconds=60)
_DOUBLINGS: Final = 6


def back_off(times: int) -> timedelta:
    """The wait after so many tries before this one: 1 s, 2 s, 4 s … and never longer than a minute."""
    return min(timedelta(seconds=2 ** min(times, _DOUBLINGS)), LONGEST)
