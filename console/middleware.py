"""The request id: on the request, in every log line, in the answer, and the incident id of error pages.

And the language of a signed-in person.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation

from accounts.address import client_address
from accounts.models import User
from accounts.origin import coming_from

log = structlog.get_logger(__name__)

HEADER = "X-Request-Id"


def request_id(request: HttpRequest) -> str:
    """The id of this request; of one that met no middleware (a bad host, a test's factory) a new one."""
    found: str | None = getattr(request, "request_id", None)
    if found is None:
        found = secrets.token_hex(8)
        request.request_id = found  # type: ignore[attr-defined]
    return found


class RequestId:
    """Give every request an id of our own: one sent by the client could name another's incident."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        incident = request_id(request)
        began = time.monotonic()
        came = coming_from(ip=client_address(request), request_id=incident)
        with structlog.contextvars.bound_contextvars(request_id=incident), came:
            response = self.get_response(request)
            # The path only: what was looked for and what was typed stay out of the logs.
            took = round((time.monotonic() - began) * 1000)
            log.info(
                "request",
                method=request.method,
                path=request.path,
                status=response.status_code,
                milliseconds=took,
            )
        response.headers[HEADER] = incident
        return response


class OwnLanguage:
    """Speak to a signed-in person in the language of their settings; else it is the cookie's or the browser's."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        chosen = request.user.language if isinstance(request.user, User) else ""
        if chosen in dict(settings.LANGUAGES):
            translation.activate(chosen)
            request.LANGUAGE_CODE = translation.get_language()
        return self.get_response(request)
