"""Reads for sweeps and lists."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.models import Membership, User
from approvals.models import OPEN_STATES, Request
from approvals.policy import Party


def barred_by_tenant(person: User) -> Q:
    """The requests that members of another tenant may not decide, where this person is one."""
    elsewhere = Membership.objects.filter(user_id=person.pk, active=True).exclude(tenant=OuterRef("tenant"))
    return Q(Exists(elsewhere), not_by__contains=[Party.OTHER_TENANT])


def overdue(*, now: datetime) -> QuerySet[Request]:
    """Open requests, of all tenants, whose time is over and whose end nobody has recorded yet."""
    return Request.objects.filter(state__in=OPEN_STATES, expires_at__lte=now).order_by("expires_at")
