"""Organisations, and the people who may make them: a permission of its own, since no organisation can carry it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import Permission
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from accounts.fence import fence_tenants
from accounts.models import PeopleAction, Tenant, User
from accounts.people import add_member
from accounts.people_log import (
    PeopleRefusedError,
    TakenError,
    WrongValueError,
    keep_change,
    require_manager,
)
from accounts.rights import Right, grant_right, tenants_with
from accounts.saved_views import views_seen_by

MANAGE = "manage_organisations"
SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
LONGEST_NAME = 200


class NotOrganiserError(PeopleRefusedError):
    """The actor may not make or change organisations."""

    code = "not_allowed"

    @property
    def sentence(self) -> str:
        return _("You do not have the right “Manage organisations”.")


class LastOrganiserError(PeopleRefusedError):
    """Nobody would be left who may manage organisations."""

    code = "last_manager"

    @property
    def sentence(self) -> str:
        return _("Nobody would be left who may manage organisations. Let somebody else do so first.")


def may_organise(person: User) -> bool:
    """Whether the person may make and change organisations, read anew."""
    return User.objects.filter(
        pk=person.pk, is_active=True, user_permissions__codename=MANAGE,
        user_permissions__content_type__app_label="accounts",
    ).exists()  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the navigation of a person depends on."""

    manages_people: bool = False  #: anywhere
    manages_organisations: bool = False
    has_views: bool = False  #: saved ones, of their own or of an organisation


def standing(person: User) -> Standing:
    """Read anew, in one query; nothing for one who is not active."""
    organises = Exists(
        Permission.objects.filter(
            user=OuterRef("pk"), codename=MANAGE, content_type__app_label="accounts"
        )
    )  # fmt: skip
    people = Exists(tenants_with(person, Right.MANAGE_PEOPLE))
    views = Exists(views_seen_by(person))
    found = User.objects.filter(pk=person.pk, is_active=True).values_list(people, organises, views).first()
    if found is None:
        return Standing()
    return Standing(manages_people=found[0], manages_organisations=found[1], has_views=found[2])


def require_organiser(actor: User | None) -> None:
    """Raise NotOrganiserError unless the actor may make organisations. None is a command, which may."""
    if actor and not may_organise(actor):
        raise NotOrganiserError


def organisers() -> list[User]:
    """Everybody who may manage organisations, by name."""
    found = User.objects.filter(
        is_active=True, user_permissions__codename=MANAGE,
        user_permissions__content_type__app_label="accounts",
    )  # fmt: skip
    return list(found.order_by("display_name", "username"))


def make_tenant(*, slug: str, name: str, actor: User | None, now: datetime) -> Tenant:
    """A new organisation, whose people the actor manages from now on. Raises NotOrganiserError, TakenError,
    WrongValueError.
    """
    if not SLUG.fullmatch(slug):
        message = _("Use small letters, digits and hyphens, at most 63, and no hyphen at the front.")
        raise WrongValueError("slug", message)
    _name(name)
    with transaction.atomic():
        require_organiser(actor)
        try:
            with transaction.atomic():
                tenant = Tenant.objects.create(slug=slug, name=name)
        except IntegrityError as error:
            raise TakenError("slug", slug) from error
        keep_change(PeopleAction.TENANT_MADE, actor=actor, now=now, tenant=tenant, name=name)
        if actor:
            add_member(person=actor, tenant=tenant, actor=None, now=now)
            grant_right(to=actor, right=Right.MANAGE_PEOPLE, obj=tenant, actor=actor, now=now)
    return tenant


def _name(name: str) -> None:
    if not name.strip() or "\x00" in name or len(name) > LONGEST_NAME:
        message = _("Enter a name of at most %(limit)d characters.") % {"limit": LONGEST_NAME}
        raise WrongValueError("name", message)


def change_tenant(
    *, tenant: Tenant, name: str, second_factor: bool, actor: User | None, now: datetime
) -> bool:
    """Change an organisation's name, and whether its people must have a second factor; False: nothing changed.

    Who manages its people may, and who manages organisations. Raises NotManagerError, WrongValueError.
    """
    _name(name)
    with transaction.atomic():
        fence_tenants([tenant.pk])
        if not (actor and may_organise(actor)):
            require_manager(actor, tenant)
        was = Tenant.objects.get(pk=tenant.pk)
        if (was.name, was.second_factor) == (name, second_factor):
            return False
        Tenant.objects.filter(pk=tenant.pk).update(name=name, second_factor=second_factor)
        keep_change(
            PeopleAction.TENANT_CHANGED, actor=actor, now=now, tenant=tenant, was=was.name, name=name,
            second_factor=second_factor,
        )  # fmt: skip
    return True


def make_organiser(*, person: User, actor: User | None, now: datetime) -> bool:
    """Let a person manage organisations; False: they could. Raises NotOrganiserError."""
    with transaction.atomic():
        require_organiser(actor)
        if may_organise(person):
            return False
        person.user_permissions.add(_permission())
        keep_change(PeopleAction.MANAGER_MADE, actor=actor, now=now, person=person)
    return True


def end_organiser(*, person: User, actor: User | None, now: datetime) -> bool:
    """Let a person manage organisations no more; False: they could not.

    Raises NotOrganiserError, LastOrganiserError.
    """
    with transaction.atomic():
        permission = Permission.objects.select_for_update().get(pk=_permission().pk)
        require_organiser(actor)
        if not may_organise(person):
            return False
        person.user_permissions.remove(permission)
        if not organisers():
            raise LastOrganiserError
        keep_change(PeopleAction.MANAGER_ENDED, actor=actor, now=now, person=person)
    return True


def _permission() -> Permission:
    return Permission.objects.get(codename=MANAGE, content_type__app_label="accounts")
