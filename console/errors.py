"""Error pages: the right status, one frame, an incident id, no stack trace."""

from __future__ import annotations

import structlog
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.translation import gettext as _

from console.middleware import request_id

log = structlog.get_logger(__name__)


def _page(request: HttpRequest, *, status: int, template: str, detail: str = "") -> HttpResponse:
    context = {"incident_id": request_id(request), "status": status, "detail": detail}
    return HttpResponse(render_to_string(f"errors/{template}.html", context, request), status=status)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """400. The exception's text is not shown: it can quote what was sent."""
    return _page(request, status=400, template="400")


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403, with the sentence of a `PermissionDenied` that was raised with one."""
    return _page(request, status=403, template="403", detail=_sentence(exception))


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404. The same page whether the thing is absent or another tenant's."""
    return _page(request, status=404, template="404")


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


# Whole in itself: it is sent when templates, static files or the database may be what failed.
FAILED = """<!doctype html>
<html lang="{lang}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{title}</title></head>
<body><main><h1>{title}</h1><p>{unknown}</p><p>{before}</p><p>{label} <code>{incident}</code></p>
<p><a href="/">{back}</a></p></main></body>
</html>
"""


def failed(request: HttpRequest) -> HttpResponse:
    """500. Needs no database and no template. What a GET asked for cannot have been recorded."""
    asked = request.method in {"GET", "HEAD"}
    page = format_html(
        FAILED,
        lang="en",
        title=_("The console failed."),
        unknown="" if asked else _("We do not know whether your last action was recorded."),
        before=_("Try again.") if asked else _("Look at the run before you try again."),
        label=_("Incident id:"),
        incident=request_id(request),
        back=_("Go to the inbox"),
    )
    return HttpResponse(page, status=500)
