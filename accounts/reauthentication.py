"""Whether a sign-in is recent enough for what cannot be undone. Asked in the actions, so no page can forget it."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.utils.translation import ngettext


class ReauthenticationNeeded(Exception):
    """The person must sign in again first: nothing was recorded. `limit` is how old a sign-in may be."""

    def __init__(self, limit: timedelta) -> None:
        self.limit = limit
        super().__init__(self.sentence)

    @property
    def sentence(self) -> str:
        """One translated sentence for a page."""
        minutes = max(1, round(self.limit.total_seconds() / 60))
        return ngettext(
            "This cannot be undone, so your sign-in may be at most %(minutes)d minute old. Sign in again first.",
            "This cannot be undone, so your sign-in may be at most %(minutes)d minutes old. Sign in again first.",
            minutes,
        ) % {"minutes": minutes}


def require_recent(*, signed_in_at: datetime | None, now: datetime) -> None:
    """Raise ReauthenticationNeeded unless the person signed in lately. None: nobody knows when, which is not lately."""
    limit: timedelta = settings.HANDOFF_DURATIONS.sign_in_again
    if signed_in_at is None or now - signed_in_at > limit:
        raise ReauthenticationNeeded(limit)
