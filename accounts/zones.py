"""Times as a person reads them: in the zone that they set, which each text names; in UTC where nobody's counts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import wraps
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils import timezone

from accounts.models import User

_NBSP = "\u00a0"


def zone_of(person: User) -> AbstractContextManager[None]:
    """Meanwhile times are written in the person's zone; in UTC where this machine does not know it any more."""
    try:
        return timezone.override(ZoneInfo(person.zone))
    except (ZoneInfoNotFoundError, ValueError):
        return timezone.override(UTC)


def in_utc[**P, R](view: Callable[P, R]) -> Callable[P, R]:
    """A page whose times are UTC for everybody: what is compared with logs and files, or handed on."""

    @wraps(view)
    def page(*args: P.args, **kwargs: P.kwargs) -> R:
        with timezone.override(UTC):
            return view(*args, **kwargs)

    return page


def written(moment: datetime, form: str, *, fraction: str = "") -> str:
    """The time in the form of strftime, and its zone. `moment` is aware."""
    local = moment.astimezone(timezone.get_current_timezone())
    return f"{local.strftime(form)}{fraction} {name_at(local)}".replace(" ", _NBSP)


def name_at(local: datetime) -> str:
    """What the zone of this time is called: its letters, else how far it is from UTC."""
    name = local.tzname() or ""
    return name if name.isalpha() else f"UTC{local.isoformat()[-6:]}"
