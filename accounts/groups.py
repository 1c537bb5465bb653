"""The groups of a tenant: roles, known to people and policies by their titles. Each change checks who asks, and is
logged.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID, uuid4

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from guardian.models import GroupObjectPermission

from accounts.fence import fence_tenants
from accounts.models import Membership, PeopleAction, Tenant, TenantGroup, User
from accounts.people_log import (
    PeopleRefusedError,
    TakenError,
    WrongValueError,
    keep_change,
    managed,
    require_manager,
    require_still_managed,
)
from accounts.rights import Right, Tenanted, grant_right, withdraw_right

LONGEST_TITLE = 100


class GroupInUseError(PeopleRefusedError):
    """The group has members or rights. Take them out first."""

    code = "group_in_use"

    def __init__(self, members: int, rights: int) -> None:
        self.members, self.rights = members, rights
        super().__init__(members, rights)

    @property
    def sentence(self) -> str:
        if self.members:
            return ngettext(
                "The group has %(number)d member. Take everybody out first.",
                "The group has %(number)d members. Take everybody out first.",
                self.members,
            ) % {"number": self.members}
        return _("The group holds rights. Withdraw them first.")


class NotMemberError(PeopleRefusedError):
    """Only people of the organisation can be in its groups."""

    code, field = "not_member", "person"

    @property
    def sentence(self) -> str:
        return _("Only people of the organisation can be in its groups.")


def make_group(
    *, tenant: Tenant, title: str, actor: User | None = None, now: datetime | None = None
) -> TenantGroup:
    """A new group without members and rights. Raises NotManagerError, TakenError, WrongValueError.

    Logged where `now` is given, as all but set-ups do.
    """
    _title(title)
    with transaction.atomic():
        require_manager(actor, tenant)
        try:
            with transaction.atomic():
                group = Group.objects.create(name=str(uuid4()))
                made = TenantGroup.objects.create(group=group, tenant=tenant, title=title)
        except IntegrityError as error:
            raise TakenError("title", title) from error
        if now:
            keep_change(PeopleAction.GROUP_MADE, actor=actor, now=now, tenant=tenant, group=title)
    return made


def _title(title: str) -> None:
    if not title or title != title.strip() or "\x00" in title or len(title) > LONGEST_TITLE:
        message = _("Enter a name of at most %(limit)d characters.") % {"limit": LONGEST_TITLE}
        raise WrongValueError("title", message)


def group_titled(tenant_id: UUID, title: str) -> TenantGroup | None:
    """The tenant's group of that title, in whatever case."""
    return TenantGroup.objects.filter(tenant_id=tenant_id, title__iexact=title).first()


def rename_group(*, group: TenantGroup, title: str, actor: User | None, now: datetime) -> bool:
    """Give the group another title; False: it is the same. Policies name groups by title: theirs then name nobody.

    Raises NotManagerError, TakenError, WrongValueError.
    """
    _title(title)
    if title == group.title:
        return False
    with transaction.atomic():
        fence_tenants([group.tenant_id])
        require_manager(actor, group.tenant)
        try:
            with transaction.atomic():
                TenantGroup.objects.filter(pk=group.pk).update(title=title)
        except IntegrityError as error:
            raise TakenError("title", title) from error
        keep_change(
            PeopleAction.GROUP_RENAMED,
            actor=actor,
            now=now,
            tenant=group.tenant,
            was=group.title,
            group=title,
        )
    return True


def delete_group(*, group: TenantGroup, actor: User | None, now: datetime) -> None:
    """Delete a group that has no members and no rights. Raises NotManagerError, GroupInUseError."""
    with transaction.atomic():
        fence_tenants([group.tenant_id])
        require_manager(actor, group.tenant)
        members = group.group.user_set.count()
        rights = GroupObjectPermission.objects.filter(group=group.group).count()
        if members or rights:
            raise GroupInUseError(members, rights)
        keep_change(PeopleAction.GROUP_DELETED, actor=actor, now=now, tenant=group.tenant, group=group.title)
        group.group.delete()


def join_group(*, group: TenantGroup, person: User, actor: User | None, now: datetime) -> bool:
    """Put a person of the tenant into the group; False: they were in it. Raises NotManagerError, NotMemberError."""
    with transaction.atomic():
        fence_tenants([group.tenant_id])
        require_manager(actor, group.tenant)
        if not Membership.objects.filter(user=person, tenant_id=group.tenant_id, active=True).exists():
            raise NotMemberError
        if person.groups.filter(pk=group.pk).exists():
            return False
        person.groups.add(group.group)
        keep_change(
            PeopleAction.GROUP_JOINED,
            actor=actor,
            now=now,
            tenant=group.tenant,
            person=person,
            group=group.title,
        )
    return True


def leave_group(*, group: TenantGroup, person: User, actor: User | None, now: datetime) -> bool:
    """Take a person out of the group; False: they were not in it. From the commit on its rights are not theirs.

    Raises NotManagerError, LastManagerError.
    """
    with transaction.atomic():
        fence_tenants([group.tenant_id])
        require_manager(actor, group.tenant)
        before = managed([group.tenant])
        if not person.groups.filter(pk=group.pk).exists():
            return False
        person.groups.remove(group.group)
        require_still_managed(before)
        keep_change(
            PeopleAction.GROUP_LEFT,
            actor=actor,
            now=now,
            tenant=group.tenant,
            person=person,
            group=group.title,
        )
    return True


def give_right(
    *, to: User | Group, right: Right, place: Tenanted, tenant: Tenant, actor: User | None, now: datetime
) -> bool:
    """Give a right, as somebody who manages people: that covers every right of the organisation, one's own or not.

    False: it was held. Raises NotManagerError, NotMemberError, MisplacedRightError.
    """
    with transaction.atomic():
        fence_tenants([tenant.pk])
        require_manager(actor, tenant)
        if place.tenant_id != tenant.pk or not _belongs(to, tenant):
            raise NotMemberError
        return grant_right(to=to, right=right, obj=place, actor=actor, now=now)


def take_right(
    *, to: User | Group, right: Right, place: Tenanted, tenant: Tenant, actor: User | None, now: datetime
) -> bool:
    """Take a right; False: it was not held. Raises NotManagerError, LastManagerError."""
    with transaction.atomic():
        fence_tenants([tenant.pk])
        require_manager(actor, tenant)
        before = managed([tenant])
        taken = withdraw_right(to=to, right=right, obj=place, actor=actor, now=now)
        require_still_managed(before)
    return taken


def _belongs(to: User | Group, tenant: Tenant) -> bool:
    if isinstance(to, User):
        return Membership.objects.filter(user=to, tenant=tenant, active=True).exists()
    return TenantGroup.objects.filter(pk=to.pk, tenant=tenant).exists()
