"""Sessions of signed-in people: opened at sign-in, closed at sign-out, by their person, or with the account."""

from __future__ import annotations

from datetime import datetime

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import QuerySet

from accounts.models import OpenSession, User
from accounts.signals import session_closed


def open_session(*, session_key: str, person: User, now: datetime, ip: str | None, agent: str) -> OpenSession:
    """Keep that a session began, and forget those of this person that have ended by themselves."""
    live = Session.objects.filter(expire_date__gt=now).values("session_key")
    OpenSession.objects.filter(user=person).exclude(session_key__in=live).delete()
    opened, _made = OpenSession.objects.update_or_create(
        session_key=session_key,
        defaults={"user": person, "began_at": now, "ip": ip, "agent": agent.replace("\x00", "")[:200]},
    )
    return opened


def close_session(session_key: str) -> None:
    """End a session: from the commit on nobody is signed in by it and nothing that was bound to it is usable."""
    with transaction.atomic():
        OpenSession.objects.filter(pk=session_key).delete()
        Session.objects.filter(pk=session_key).delete()
        session_closed.send(sender=OpenSession, session_key=session_key)


def close_sessions(person: User, *, but: str | None = None) -> int:
    """End all sessions of a person, but for one. How many ended."""
    keys = [open_.pk for open_ in OpenSession.objects.filter(user=person) if open_.pk != but]
    with transaction.atomic():
        for key in keys:
            close_session(key)
    return len(keys)


def sessions_of(person: User, now: datetime) -> QuerySet[OpenSession]:
    """The sessions in which this person is signed in, newest first."""
    live = Session.objects.filter(expire_date__gt=now).values("session_key")
    return OpenSession.objects.filter(user=person, session_key__in=live).order_by("-began_at")
