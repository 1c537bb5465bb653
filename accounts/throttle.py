"""Refused sign-ins are counted by name and by address, over all processes, and too many of either wait.

A name waits after few, whoever it is and whether anybody has it. Attempts on a name that waits are not counted against
the address, so one name cannot shut out everybody behind one address; that takes many names.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Max, Sum
from django.http import HttpRequest
from django.utils import timezone

from accounts.address import client_address

Credentials = dict[str, Any]


class Throttle(AxesDatabaseHandler):  # type: ignore[misc]
    """Axes' own, with a limit for names and another for addresses. The failure limit it asks for is 1."""

    def get_failures(self, request: HttpRequest, credentials: Credentials | None = None) -> int:
        """1 where the name or the address has to wait, else 0."""
        return 1 if waits_until(request, get_client_username(request, credentials)) else 0

    def reset_user_attempts(self, request: HttpRequest, credentials: Credentials | None = None) -> int:
        """After a sign-in: forget this name's failures from this address, and nobody else's."""
        name, address = get_client_username(request, credentials), client_address(request)
        forgotten: int = AccessAttempt.objects.filter(username=name, ip_address=address).delete()[0]
        return forgotten


def waits_until(request: HttpRequest, name: str | None) -> datetime | None:
    """Until when sign-ins under this name or from the request's address are refused; None: they are not."""
    limits = (
        ({"username": name}, settings.HANDOFF_SIGN_IN_FAILURES_OF_A_NAME),
        ({"ip_address": client_address(request)}, settings.HANDOFF_SIGN_IN_FAILURES_OF_AN_ADDRESS),
    )
    ends = [_ends(by, limit) for by, limit in limits if None not in by.values()]
    return max((end for end in ends if end), default=None)


def _ends(by: dict[str, str | None], limit: int) -> datetime | None:
    """When the last failure will be forgotten, where there are as many as the limit."""
    since = timezone.now() - settings.AXES_COOLOFF_TIME
    found = AccessAttempt.objects.filter(**by, attempt_time__gte=since).aggregate(
        failures=Sum("failures_since_start"), last=Max("attempt_time")
    )
    if (found["failures"] or 0) < limit:
        return None
    last: datetime = found["last"]
    return last + settings.AXES_COOLOFF_TIME
