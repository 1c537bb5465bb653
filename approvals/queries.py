"""Reads for pages and sweeps. Each is one query, or one and its prefetch."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet
from guardian.models import GroupObjectPermission, UserObjectPermission

from accounts.models import User
from approvals.models import OPEN_STATES, Decision, Request, RequestState, Verdict


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
    return pending.filter(_held_by(person), ~Exists(mine)).order_by("expires_at")


def overdue(*, now: datetime) -> QuerySet[Request]:
    """Open requests, of all tenants, whose time is over and whose end nobody has recorded yet."""
    return Request.objects.filter(state__in=OPEN_STATES, expires_at__lte=now).order_by("expires_at")


def _held_by(person: User) -> Q:
    on = {
        "content_type": OuterRef("object_type"),
        "object_pk": OuterRef("object_pk"),
        "permission__codename": OuterRef("codename"),
        "permission__content_type": OuterRef("object_type"),
    }
    direct = UserObjectPermission.objects.filter(user_id=person.pk, **on)
    by_group = GroupObjectPermission.objects.filter(group__user=person.pk, **on)
    return Q(Exists(direct)) | Q(Exists(by_group))
