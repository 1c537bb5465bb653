"""The groups of a tenant: roles, known to people and policies by their titles."""

from __future__ import annotations

from uuid import UUID, uuid4

from django.contrib.auth.models import Group
from django.db import transaction

from accounts.models import Tenant, TenantGroup


def make_group(*, tenant: Tenant, title: str) -> TenantGroup:
    """A new group without members and rights. Raises IntegrityError if the tenant has one of that title."""
    with transaction.atomic():
        group = Group.objects.create(name=str(uuid4()))
        return TenantGroup.objects.create(group=group, tenant=tenant, title=title)


def group_titled(tenant_id: UUID, title: str) -> TenantGroup | None:
    """The tenant's group of that title, in whatever case."""
    return TenantGroup.objects.filter(tenant_id=tenant_id, title__iexact=title).first()
