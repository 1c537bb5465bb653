"""Where a person goes once signed in."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.http import url_has_allowed_host_and_scheme


def way_back(request: HttpRequest) -> str:
    """Where the person came from, if that is a page of this console."""
    asked = request.POST.get("next") or request.GET.get("next") or "/"
    hosts, secure = {request.get_host()}, request.is_secure()
    return asked if url_has_allowed_host_and_scheme(asked, allowed_hosts=hosts, require_https=secure) else "/"
