"""The durations of this process, as the settings chose them."""

from __future__ import annotations

from django.conf import settings

from runs.durations import Durations


def durations() -> Durations:
    """The row of the table that `HANDOFF_PROFILE` picked."""
    return settings.HANDOFF_DURATIONS
