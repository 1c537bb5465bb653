"""The request id: on the request, in every log line, in the answer, and the incident id of error pages."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse

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
        with structlog.contextvars.bound_contextvars(request_id=incident):
            response = self.get_response(request)
        response.headers[HEADER] = incident
        return response
