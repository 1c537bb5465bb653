"""Tenants, people, groups, who belongs where, and the log of rights that were granted and withdrawn."""

from __future__ import annotations

import uuid
import zoneinfo
from typing import ClassVar

from django.contrib.auth.models import AbstractUser, Group
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q, QuerySet
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from accounts.permissions import ON_TENANT, declared


def validate_zone(value: str) -> None:
    """Raise ValidationError unless `value` is a time zone that this machine knows."""
    if value not in zoneinfo.available_timezones():
        raise ValidationError(_("“%(zone)s” is not a time zone."), params={"zone": value})


class Tenant(models.Model):
    """An organisation. Everything that a run has or does belongs to exactly one."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.CharField(max_length=63, unique=True)
    name = models.CharField(max_length=200)

    class Meta:
        default_permissions = ()
        permissions = declared(ON_TENANT)
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(slug__regex=r"^[a-z0-9][a-z0-9-]*$"), name="accounts_tenant_slug_plain"
            ),
            models.CheckConstraint(condition=Q(name__regex=r"\S"), name="accounts_tenant_has_name"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def tenant_id(self) -> uuid.UUID:
        """Itself: rights are held on a tenant as on what belongs to one."""
        return self.pk


class User(AbstractUser):
    """A person. Workers, agents and commands are actors but never users."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    display_name = models.CharField(max_length=150, blank=True)
    zone = models.CharField(max_length=64, default="UTC", validators=[validate_zone])

    def __str__(self) -> str:
        return self.shown_name

    @property
    def shown_name(self) -> str:
        """What pages call this person."""
        return self.display_name or self.get_full_name() or self.username

    def tenants(self) -> QuerySet[Tenant]:
        """The tenants of which this person is an active member, read anew; none for one who is not active."""
        mine = Membership.objects.filter(user_id=self.pk, user__is_active=True, active=True)
        return Tenant.objects.filter(pk__in=mine.values("tenant_id")).order_by("name")


class Membership(models.Model):
    """That a person belongs to a tenant. Ended by `active`, so that history keeps its names."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    active = models.BooleanField(default=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["user", "tenant"], name="accounts_one_membership"),
        ]

    def __str__(self) -> str:
        return f"{self.user} / {self.tenant}"


class TenantGroup(models.Model):
    """A group of people of one tenant: a role, as which rights are held and which policies name by title.

    Members and rights hang on Django's group; its own name is an id, since those are unique over all tenants.
    """

    group = models.OneToOneField(Group, on_delete=models.CASCADE, primary_key=True, related_name="of_tenant")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="groups")
    title = models.CharField(max_length=100)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint("tenant", Lower("title"), name="accounts_tenantgroup_one_title"),
            models.CheckConstraint(
                condition=Q(title__regex=r"^\S(.*\S)?$"), name="accounts_tenantgroup_has_title"
            ),
        ]

    def __str__(self) -> str:
        return self.title


class RightChange(models.Model):
    """One right granted or withdrawn: by whom, to whom, on what. Append-only, which a trigger holds."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    #: None: a command or the system, never a person.
    actor = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", null=True)
    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", null=True)
    group = models.ForeignKey(
        Group, on_delete=models.DO_NOTHING, related_name="+", null=True, db_constraint=False
    )
    codename = models.CharField(max_length=100)
    object_type = models.ForeignKey(ContentType, on_delete=models.PROTECT, related_name="+")
    object_pk = models.CharField(max_length=255)
    granted = models.BooleanField()
    at = models.DateTimeField()

    class Meta:
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "-at"], name="accounts_rightchange_at")
        ]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(person__isnull=True) ^ Q(group__isnull=True),
                name="accounts_rightchange_one_holder",
            ),
        ]

    def __str__(self) -> str:
        done = "granted" if self.granted else "withdrawn"
        return f"{self.codename} on {self.object_pk} {done}"
