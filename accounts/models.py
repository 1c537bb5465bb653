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
    #: Whether its people must have a second factor before they see anything.
    second_factor = models.BooleanField(default=False)

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


class Theme(models.TextChoices):
    """In which colours pages are shown."""

    SYSTEM = "system", _("System theme")  #: as the person's machine is set
    LIGHT = "light", _("Light theme")
    DARK = "dark", _("Dark theme")


class Density(models.TextChoices):
    """How much room the rows of tables take."""

    COMFORTABLE = "comfortable", _("Comfortable")
    COMPACT = "compact", _("Compact")


class User(AbstractUser):
    """A person. Workers, agents and commands are actors but never users."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    display_name = models.CharField(max_length=150, blank=True)
    zone = models.CharField(max_length=64, default="UTC", validators=[validate_zone])
    #: Empty: as the browser asks. One that is not offered any more counts as empty.
    language = models.CharField(max_length=16, blank=True, default="")
    theme = models.CharField(max_length=8, choices=Theme, default=Theme.SYSTEM)
    density = models.CharField(max_length=12, choices=Density, default=Density.COMFORTABLE)
    #: Whether single keys do something on pages.
    shortcuts = models.BooleanField(default=True)

    class Meta(AbstractUser.Meta):
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(condition=Q(theme__in=Theme.values), name="accounts_user_theme"),
            models.CheckConstraint(condition=Q(density__in=Density.values), name="accounts_user_density"),
        ]

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


class SavedView(models.Model):
    """A list of runs that is kept under a name: of one person, or for all people of a tenant.

    It shows nobody more than they may see: what is kept is the question, never its answer.
    """

    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+", null=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", null=True)
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=60)
    #: The inbox's query, with its question mark.
    query = models.CharField(max_length=1000)
    place = models.PositiveSmallIntegerField()  #: among those of the same person or tenant
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(person__isnull=True) ^ Q(tenant__isnull=True),
                name="accounts_savedview_one_holder",
            ),
            models.CheckConstraint(
                condition=Q(name__regex=r"^\S(.*\S)?$"), name="accounts_savedview_has_name"
            ),
            models.CheckConstraint(condition=Q(query__startswith="?"), name="accounts_savedview_query"),
            models.UniqueConstraint("person", Lower("name"), name="accounts_savedview_own_name"),
            models.UniqueConstraint("tenant", Lower("name"), name="accounts_savedview_shared_name"),
        ]

    def __str__(self) -> str:
        return self.name


class PeopleAction(models.TextChoices):
    """What is done with people, groups and organisations. Rights have a log of their own."""

    PERSON_MADE = "person_made", _("made a person")
    MEMBER_ADDED = "member_added", _("added a person to the organisation")
    MEMBER_ENDED = "member_ended", _("ended a membership")
    DEACTIVATED = "deactivated", _("deactivated a person")
    ACTIVATED = "activated", _("let a person sign in again")
    LINK_MADE = "link_made", _("made a link to set a password")
    LINK_USED = "link_used", _("set a password by a link")
    PASSWORD_CHANGED = "password_changed", _("changed a password")
    EMAIL_CHANGED = "email_changed", _("changed an e-mail address")
    FACTOR_ADDED = "factor_added", _("set up a second factor")
    FACTOR_REMOVED = "factor_removed", _("removed a second factor")
    CODES_MADE = "codes_made", _("made new recovery codes")
    LINKED = "linked", _("linked a person to an identity of another service")
    UNLINKED = "unlinked", _("ended a link to an identity of another service")
    SESSION_ENDED = "session_ended", _("ended a session")
    GROUP_MADE = "group_made", _("made a group")
    GROUP_RENAMED = "group_renamed", _("renamed a group")
    GROUP_DELETED = "group_deleted", _("deleted a group")
    GROUP_JOINED = "group_joined", _("added a person to a group")
    GROUP_LEFT = "group_left", _("took a person out of a group")
    TENANT_MADE = "tenant_made", _("made an organisation")
    TENANT_CHANGED = "tenant_changed", _("changed an organisation")
    AGENT_ADDED = "agent_added", _("let an organisation use an agent")
    AGENT_TITLED = "agent_titled", _("gave an agent another title")
    MANAGER_MADE = "manager_made", _("let a person manage organisations")
    MANAGER_ENDED = "manager_ended", _("ended that a person manages organisations")
    VIEW_SHARED = "view_shared", _("saved a view for the organisation")
    VIEW_REMOVED = "view_removed", _("deleted a view of the organisation")


class PeopleChange(models.Model):
    """One thing done with people, groups or organisations, and by whom. Append-only, which a trigger holds."""

    #: None: about a person in whatever organisation.
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", null=True)
    #: None: a command or the system, never a person.
    actor = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", null=True)
    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", null=True)
    action = models.CharField(max_length=40)
    #: The group's or organisation's name at that time, what was and what became.
    detail = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        permissions = (("manage_organisations", "manage_organisations"),)
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["tenant", "-at"], name="accounts_peoplechange_at"),
            models.Index(fields=["person", "-at"], name="accounts_peoplechange_person"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.person_id or ''}"


class SignInOutcome(models.TextChoices):
    """What became of a try to sign in."""

    SIGNED_IN = "signed_in", _("signed in")
    SIGNED_IN_AGAIN = "signed_in_again", _("signed in again")
    SIGNED_OUT = "signed_out", _("signed out")
    WRONG = "wrong", _("was refused: name, password or code were wrong")
    THROTTLED = "throttled", _("was refused: too many attempts")
    UNKNOWN = "unknown", _("was refused: the other service named nobody here")


class SignIn(models.Model):
    """One sign-in, or a refused one. Append-only, which a trigger holds.

    A name that nobody has is not kept: people type passwords into that field.
    """

    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", null=True)
    outcome = models.CharField(max_length=20)
    #: "password", "code", or the name of the other service.
    method = models.CharField(max_length=100)
    at = models.DateTimeField()
    ip = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=64, blank=True)

    class Meta:
        default_permissions = ()
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["person", "-at"], name="accounts_signin_person"),
            models.Index(fields=["-at"], name="accounts_signin_at"),
        ]

    def __str__(self) -> str:
        return f"{self.person_id or 'somebody'} {self.outcome}"


class OpenSession(models.Model):
    """A session of a signed-in person, under the key of its row in Django's table. Gone once it is closed."""

    session_key = models.CharField(max_length=40, primary_key=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="open_sessions")
    began_at = models.DateTimeField()
    ip = models.GenericIPAddressField(null=True)
    agent = models.CharField(max_length=200, blank=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.user} since {self.began_at}"


class PasswordLink(models.Model):
    """A link by which a person sets a password, once and until it expires. Only the token's hash is kept."""

    token_hash = models.CharField(max_length=64, primary_key=True)
    person = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"link for {self.person}"
