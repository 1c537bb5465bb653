"""Error pages: the right status, one frame, an incident id, no stack trace."""

from __future__ import annotations

import re

import structlog
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.translation import gettext as _

from console.middleware import request_id

log = structlog.get_logger(__name__)

RUN_ID = re.compile(r"\brun_\w+")


def _page(request: HttpRequest, *, status: int, template: str, **said: str) -> HttpResponse:
    context = {"incident_id": request_id(request), "status": status, **said}
    return HttpResponse(render_to_string(f"errors/{template}.html", context, request), status=status)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """400. The exception's text is not shown: it can quote what was sent."""
    return _page(request, status=400, template="400")


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403, with the sentence of a `PermissionDenied` that was raised with one."""
    return _page(request, status=403, template="403", detail=_sentence(exception))


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404. The same page whether the thing is absent or another tenant's."""
    asked = RUN_ID.search(request.path)
    return _page(request, status=404, template="404", id=asked.group() if asked else "")


def _sentence(exception: Exception | None) -> str:
    return exception.args[0] if exception and exception.args and isinstance(exception.args[0], str) else ""


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 where the form's token no longer fits, as after signing in again in another tab."""
    log.warning("csrf_refused", reason=reason)
    sentence = _(
        "This form belongs to an earlier sign-in. Nothing was recorded. "
        "Go back, reload the page and send it again."
    )
    return _page(request, status=403, template="403", detail=sentence)


# For the case that the template is what failed.
LAST_RESORT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>The console failed</title></head>
<body><h1>The console failed</h1>
<p>We do not know whether your last action was recorded. Look at the run before you try again.</p>
<p>Incident id <code>{}</code></p></body></html>
"""


def failed(request: HttpRequest) -> HttpResponse:
    """500. Needs no database and no session. What a GET asked for cannot have been recorded."""
    incident = request_id(request)
    context = {"incident_id": incident, "may_have_recorded": request.method not in {"GET", "HEAD"}}
    try:
        page = render_to_string("errors/500.html", context)
    except Exception:  # noqa: BLE001 - whatever it was, this answer has to be sent
        page = format_html(LAST_RESORT, incident)
    return HttpResponse(page, status=500)
