"""Where a request came from."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str | None:
    """The client's address; None where nobody knows it.

    Behind a proxy it is the last entry of X-Forwarded-For, which the proxy itself added: those before it are what the
    client sent. Without one the header is anybody's invention and not read.
    """
    told = request.META.get("REMOTE_ADDR", "")
    if settings.HANDOFF_BEHIND_PROXY:
        told = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip() or told
    return _plain(told)


def _plain(told: str) -> str | None:
    try:
        address = ipaddress.ip_address(told)
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
