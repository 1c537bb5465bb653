"""How long each thing may take: one table, one row per profile. No duration is named anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final


class UnknownProfile(LookupError):
    """No row of durations has this name: use one of those that the message lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """The durations of one profile. The tools' own values win over `dispatch_window` to `patience`."""

    lease: timedelta
    sweep: timedelta
    dispatch_window: timedelta
    tool_timeout: timedelta
    settle: timedelta
    patience: timedelta
    approval_stands: timedelta
    grant_stands: timedelta
    #: How long a configured document of constraints counts that cannot be asked any more.
    configuration_stands: timedelta
    #: How often each of them is asked where no run asks.
    configuration_asked: timedelta
    version_grace: timedelta
    page_poll: timedelta
    #: How old a sign-in may be where what is decided cannot be undone.
    sign_in_again: timedelta
    #: How long a name or an address waits after too many refused sign-ins.
    lockout: timedelta
    #: After how long without doing anything about a run a person counts as not working on it any more.
    claim_lapses: timedelta
    #: How long a link to set a password works.
    password_link: timedelta

    @property
    def heartbeat(self) -> timedelta:
        """How often a worker says that it lives."""
        return min(self.version_grace / 4, timedelta(seconds=5))

    @property
    def worker_silent(self) -> timedelta:
        """After how long without a word a page says that a worker is not there."""
        return max(3 * self.heartbeat, timedelta(seconds=5))


PROFILES: Final[Mapping[str, Durations]] = {
    "production": Durations(
        lease=timedelta(seconds=30),
        sweep=timedelta(seconds=5),
        dispatch_window=timedelta(seconds=5),
        tool_timeout=timedelta(seconds=20),
        settle=timedelta(seconds=60),
        patience=timedelta(seconds=900),
        approval_stands=timedelta(hours=24),
        grant_stands=timedelta(days=30),
        configuration_stands=timedelta(hours=1),
        configuration_asked=timedelta(seconds=60),
        version_grace=timedelta(minutes=10),
        page_poll=timedelta(seconds=10),
        sign_in_again=timedelta(minutes=15),
        lockout=timedelta(minutes=15),
        claim_lapses=timedelta(minutes=15),
        password_link=timedelta(days=3),
    ),
    "demo": Durations(
        lease=timedelta(seconds=10),
        sweep=timedelta(seconds=2),
        dispatch_window=timedelta(seconds=3),
        tool_timeout=timedelta(seconds=5),
        settle=timedelta(seconds=10),
        patience=timedelta(seconds=45),
        approval_stands=timedelta(minutes=15),
        grant_stands=timedelta(days=1),
        configuration_stands=timedelta(minutes=10),
        configuration_asked=timedelta(seconds=10),
        version_grace=timedelta(seconds=30),
        page_poll=timedelta(seconds=5),
        sign_in_again=timedelta(minutes=15),
        lockout=timedelta(minutes=2),
        claim_lapses=timedelta(minutes=15),
        password_link=timedelta(hours=1),
    ),
    "test": Durations(
        lease=timedelta(seconds=2),
        sweep=timedelta(seconds=0.5),
        dispatch_window=timedelta(seconds=0.5),
        tool_timeout=timedelta(seconds=1),
        settle=timedelta(seconds=1),
        patience=timedelta(seconds=6),
        approval_stands=timedelta(seconds=5),
        grant_stands=timedelta(days=1),
        configuration_stands=timedelta(hours=1),
        configuration_asked=timedelta(seconds=2),
        version_grace=timedelta(seconds=2),
        page_poll=timedelta(seconds=1),
        sign_in_again=timedelta(minutes=15),
        lockout=timedelta(minutes=15),
        claim_lapses=timedelta(minutes=15),
        password_link=timedelta(hours=1),
    ),
}


def profile(name: str) -> Durations:
    """The row of that name: `production`, `demo` or `test`. Raises `UnknownProfile` for any other."""
    try:
        return PROFILES[name]
    except KeyError:
        raise UnknownProfile(f"No durations called {name!r}; use one of: {', '.join(PROFILES)}") from None
