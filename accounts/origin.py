"""Where what is being done came from: which request, from which address, or no request at all.

Set at the edge for as long as a request is answered. What is recorded meanwhile takes it as it is made, so that no
action has to hand it on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Origin = dict[str, str]

_origin: ContextVar[Origin | None] = ContextVar("handoff_origin", default=None)


@contextmanager
def coming_from(*, ip: str | None, request_id: str) -> Iterator[None]:
    """What is recorded inside came by this request."""
    token = _origin.set({"via": "console", "ip": ip or "", "request_id": request_id})
    try:
        yield
    finally:
        _origin.reset(token)


def origin() -> Origin:
    """Where what is done now came from; `via` alone where no request asked for it."""
    return dict(_origin.get() or {"via": "command"})
