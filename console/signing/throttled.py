"""429: too many refused sign-ins."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.throttle import waits_until
from console.middleware import request_id
from runs.clock import database_now
from runs.pages import words


def throttled(request: HttpRequest, name: str) -> HttpResponse | None:
    """The answer to a sign-in under a name, or from an address, that has to wait; None: it need not."""
    until = waits_until(request, name)
    return too_many(request, until) if until else None


def too_many(request: HttpRequest, until: datetime) -> HttpResponse:
    """The same page for a name that somebody has and for one that nobody has."""
    now = database_now()
    context = {"incident_id": request_id(request), "until": words.clock(until), "now": now}
    response = render(request, "errors/429.html", context, status=429)
    response["Retry-After"] = str(max(1, round((until - now).total_seconds())))
    return response
