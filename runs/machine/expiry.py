"""When a request for approval is announced to end soon, when it has ended, and a run as it stands once it has."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.transitions import allows

#: The end is announced so long before, or a quarter of the whole time before where that is less.
SOON: Final = timedelta(minutes=15)
QUARTER: Final = 4


def announced_from(opened: datetime, expires_at: datetime) -> datetime:
    """From here on the end is near."""
    return expires_at - min(SOON, (expires_at - opened) / QUARTER)


def due(state: s.RunState) -> datetime | None:
    """When the next thing about the end of an open request has to be recorded; None where there is nothing."""
    request = state.request
    if request is None or request.status not in s.OPEN_REQUEST:
        return None
    if request.announce_at is None:  # asked for before ends were announced
        return request.expires_at if request.status is s.RequestStatus.PENDING else None
    return request.expires_at if request.announced_seq else request.announce_at


def recorded(state: s.RunState, now: datetime) -> tuple[e.Event, ...]:
    """That an open request has ended, or ends soon; nothing before, nothing twice.

    While a worker is at the steps of the plan it finds the end itself, with all other checks.
    """
    request, at = state.request, due(state)
    if request is None or request.status not in s.OPEN_REQUEST or not allows(state.state, e.ExpiryAnnounced):
        return ()
    if now >= request.expires_at:
        return (e.ApprovalExpired(request=request.id, version=request.version),)
    if at is None or now < at or request.announced_seq:
        return ()
    return (e.ExpiryAnnounced(request=request.id, version=request.version, expires_at=request.expires_at),)


def as_of(state: s.RunState, now: datetime) -> s.RunState:
    """The run as people have to see it at that time: what is past its end has ended, also before that is recorded."""
    request = state.request
    if request is None or request.status not in s.OPEN_REQUEST or now < request.expires_at:
        return state
    ended = replace(request, status=s.RequestStatus.EXPIRED, closed_at=request.expires_at)
    return replace(state, requests=(*state.requests[:-1], ended))
