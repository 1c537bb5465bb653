"""Ages, remaining times and clock times as words. The script speaks the same words from `UNITS`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.zones import written

UNITS: Final = {
    "seconds": gettext_lazy("%(s)s s"),
    "minutes": gettext_lazy("%(m)s min"),
    "both": gettext_lazy("%(m)s min %(s)s s"),
    "hours": gettext_lazy("%(h)s h %(m)s min"),
    "days": gettext_lazy("%(d)s d %(h)s h"),
    "ago": gettext_lazy("%(span)s ago"),
    "until": gettext_lazy("in %(span)s"),
}

_NBSP: Final = "\u00a0"


def span(length: timedelta, *, exact: bool = False) -> str:
    """A duration in words; `exact` keeps the seconds of one below an hour. A negative length counts as zero."""
    total = max(0, int(length.total_seconds()))
    d, h, m, s = total // 86400, total // 3600, total // 60 % 60, total % 60
    if total < 60:
        name, parts = "seconds", {"s": s}
    elif total < 3600:
        name, parts = ("both", {"m": m, "s": s}) if exact and s else ("minutes", {"m": m})
    elif total < 86400:
        name, parts = "hours", {"h": h, "m": m}
    else:
        name, parts = "days", {"d": d, "h": h % 24}
    return (str(UNITS[name]) % parts).replace(" ", _NBSP)


def relative(moment: datetime, *, now: datetime) -> str:
    """ "42 min ago" or "in 8 min 12 s", seen from `now`; both times aware."""
    if moment > now:
        return str(UNITS["until"]) % {"span": span(moment - now, exact=True)}
    return str(UNITS["ago"]) % {"span": span(now - moment)}


def absolute(moment: datetime, *, milliseconds: bool = False, clock: bool = False) -> str:
    """The time with its zone: full, with milliseconds, or the time of day alone. Naive times raise ValueError."""
    if moment.tzinfo is None:
        raise ValueError(_("A time without a zone cannot be shown."))
    fraction = f".{moment.microsecond // 1000:03d}" if milliseconds else ""
    return written(moment, "%H:%M:%S" if clock else "%Y-%m-%d %H:%M:%S", fraction=fraction)
