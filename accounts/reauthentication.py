"""Whether a sign-in is recent enough for what cannot be undone, or opens an account. Asked in the actions, so no page
can forget it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.utils.translation import ngettext

from accounts.models import User


class ReauthenticationNeeded(Exception):
    """The person must sign in again first: nothing was recorded. `limit` is how old a sign-in may be; `account` whether
    it is about how somebody signs in, and not about what cannot be undone.
    """

    def __init__(self, limit: timedelta, *, account: bool = False) -> None:
        self.limit, self.account = limit, account
        super().__init__(self.sentence)

    @property
    def sentence(self) -> str:
        """One translated sentence for a page."""
        minutes = max(1, round(self.limit.total_seconds() / 60))
        if self.account:
            return ngettext(
                "This changes how somebody signs in, so your sign-in may be at most %(minutes)d minute old.",
                "This changes how somebody signs in, so your sign-in may be at most %(minutes)d minutes old.",
                minutes,
            ) % {"minutes": minutes}
        return ngettext(
            "This cannot be undone, so your sign-in may be at most %(minutes)d minute old. Sign in again first.",
            "This cannot be undone, so your sign-in may be at most %(minutes)d minutes old. Sign in again first.",
            minutes,
        ) % {"minutes": minutes}


def require_recent(*, signed_in_at: datetime | None, now: datetime, account: bool = False) -> None:
    """Raise ReauthenticationNeeded unless the person signed in lately. None: nobody knows when, which is not lately."""
    limit: timedelta = settings.HANDOFF_DURATIONS.sign_in_again
    if signed_in_at is None or now - signed_in_at > limit:
        raise ReauthenticationNeeded(limit, account=account)


def require_recent_for_account(*, actor: User | None, signed_in_at: datetime | None, now: datetime) -> None:
    """The same for a manager who changes how another person signs in. None as actor is a command, which never signs in.

    Whoever finds a manager's open screen must not get a lasting way into other people's accounts by it.
    """
    if actor is not None:
        require_recent(signed_in_at=signed_in_at, now=now, account=True)
