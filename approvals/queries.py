"""Reads for pages and sweeps. Each is one query, or one and its prefetch."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import (
    Exists,
    F,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
)

from accounts.models import Membership, User
from accounts.rights import holding
from approvals.models import OPEN_STATES, Decision, Request, RequestState, Verdict
from approvals.policy import Party


def open_requests(*, tenant_id: UUID, subjects: Iterable[str]) -> QuerySet[Request]:
    """The requests about these subjects that are pending or valid."""
    return Request.objects.filter(tenant_id=tenant_id, subject__in=list(subjects), state__in=OPEN_STATES)


def history(*, tenant_id: UUID, subjects: Iterable[str]) -> list[Request]:
    """All requests about these subjects, newest first; `decisions.all()` of each is loaded, oldest first,
    with people.
    """
    decisions = Decision.objects.select_related("person").order_by("at")
    requests = Request.objects.filter(tenant_id=tenant_id, subject__in=list(subjects)).order_by("-opened_at")
    return list(requests.prefetch_related(Prefetch("decisions", queryset=decisions)))


def awaiting(*, person: User, now: datetime) -> QuerySet[Request]:
    """The pending requests that this person may decide now and has not approved yet, the first to expire
    first.
    """
    mine = Decision.objects.filter(request=OuterRef("pk"), person_id=person.pk, verdict=Verdict.APPROVE)
    pending = Request.objects.filter(
        state=RequestState.PENDING, expires_at__gt=now, tenant__in=person.tenants()
    ).exclude(excluded__has_key=str(person.pk))
    pending = pending.exclude(barred_by_tenant(person))
    held = holding(person, F("codename"), F("object_type"), F("object_pk"))
    return pending.alias(held=held).filter(~Exists(mine), held=True).order_by("expires_at")


def barred_by_tenant(person: User) -> Q:
    """The requests that members of another tenant may not decide, where this person is one."""
    elsewhere = Membership.objects.filter(user_id=person.pk, active=True).exclude(tenant=OuterRef("tenant"))
    return Q(Exists(elsewhere), not_by__contains=[Party.OTHER_TENANT])


def overdue(*, now: datetime) -> QuerySet[Request]:
    """Open requests, of all tenants, whose time is over and whose end nobody has recorded yet."""
    return Request.objects.filter(state__in=OPEN_STATES, expires_at__lte=now).order_by("expires_at")
