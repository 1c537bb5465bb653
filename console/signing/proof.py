"""What another service has just proved of the person who signs in again, until their own code comes on top."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.http import HttpRequest

PROVED = "proved_by_service"
#: How long the code may take. Long enough to find the phone, and too short for whoever finds the screen.
STANDS = timedelta(minutes=5)


def keep_proof(request: HttpRequest, *, service: str, now: datetime) -> None:
    """The service said just now that it is the person of this session."""
    request.session[PROVED] = {"service": service, "at": now.isoformat()}


def proved_by(request: HttpRequest, now: datetime) -> str:
    """The service that proved it lately; empty where none did."""
    kept = request.session.get(PROVED)
    if kept is None or now - datetime.fromisoformat(kept["at"]) > STANDS:
        return ""
    return str(kept["service"])


def drop_proof(request: HttpRequest) -> None:
    """It was used."""
    request.session.pop(PROVED, None)
