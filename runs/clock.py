"""The database's clock, as a process knows it between two reads of it."""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from runs.host import uptime


def database_now() -> datetime:
    """`handoff_now()`: within a transaction always the moment at which it began."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT handoff_now()")
        row: tuple[datetime] = cursor.fetchone()
    return row[0]


class Clock:
    """Read once, then carried on by a clock of this host that never jumps; a worker's own time of day is
    not used.

    The ledger refuses an event whose time is off by more than a second, and the holder reads the clock again.
    """

    def __init__(self, base: datetime | None = None) -> None:
        """`base`: what the database's clock just said, where somebody asked it."""
        self._base, self._read_at = base or database_now(), uptime()

    def read(self) -> None:
        """Take the database's time anew."""
        self._base, self._read_at = database_now(), uptime()

    def now(self) -> datetime:
        """The database's time, as far as this process can know without asking."""
        return self._base + (uptime() - self._read_at)
