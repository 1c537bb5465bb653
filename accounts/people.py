"""What is done with people: make them, let them in, end what they belong to. Each checks who asks, and is logged.

A person has one account, and belongs to organisations. Who manages people in one of them decides on the membership
there; the account itself is changed only by somebody who manages people in all of them.
"""

from __future__ import annotations

from datetime import datetime

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from guardian.models import UserObjectPermission

from accounts.fence import fence_tenants
from accounts.models import Membership, PasswordLink, PeopleAction, Tenant, User
from accounts.people_log import (
    NotWhollyYoursError,
    TakenError,
    WrongValueError,
    keep_change,
    managed,
    require_manager,
    require_reason,
    require_still_managed,
)
from accounts.reauthentication import require_recent_for_account
from accounts.rights import Right, tenants_with, withdraw_right
from accounts.second_factors import remove_factors
from accounts.sessions import close_sessions

LONGEST_NAME = 150
LONGEST_EMAIL = 254


def make_person(
    *, tenant: Tenant, username: str, display_name: str, email: str, actor: User | None, now: datetime
) -> User:
    """A new person of the tenant, who cannot sign in before they set a password by a link or are linked to a service.

    Raises NotManagerError, TakenError, WrongValueError.
    """
    _plain(username, email)
    with transaction.atomic():
        fence_tenants([tenant.pk])
        require_manager(actor, tenant)
        try:
            with transaction.atomic():
                person = User.objects.create_user(
                    username=username, display_name=display_name[:LONGEST_NAME], email=email
                )
        except IntegrityError as error:
            raise TakenError("username", username) from error
        Membership.objects.create(user=person, tenant=tenant)
        keep_change(PeopleAction.PERSON_MADE, actor=actor, now=now, tenant=tenant, person=person)
    return person


def _plain(username: str, email: str) -> None:
    """Raise WrongValueError for what no account can have."""
    try:
        User.username_validator(username)
    except ValidationError as error:
        raise WrongValueError("username", error.messages[0]) from error
    for field, text, limit in (("username", username, LONGEST_NAME), ("email", email, LONGEST_EMAIL)):
        if len(text) > limit:
            raise WrongValueError(field, _("Use at most %(limit)d characters.") % {"limit": limit})
    try:
        if email:
            validate_email(email)
    except ValidationError as error:
        raise WrongValueError("email", error.messages[0]) from error


def add_member(*, person: User, tenant: Tenant, actor: User | None, now: datetime) -> bool:
    """Let an existing person belong to the tenant; False: they did already. Raises NotManagerError."""
    with transaction.atomic():
        # Elsewhere an approval may stop counting by it: all at once, since the trigger would take those out of order.
        elsewhere = Membership.objects.filter(user=person, active=True).values_list("tenant_id", flat=True)
        fence_tenants([tenant.pk, *elsewhere])
        require_manager(actor, tenant)
        membership, made = Membership.objects.get_or_create(user=person, tenant=tenant)
        if not made and membership.active:
            return False
        Membership.objects.filter(pk=membership.pk).update(active=True)
        keep_change(PeopleAction.MEMBER_ADDED, actor=actor, now=now, tenant=tenant, person=person)
    return True


def end_membership(*, person: User, tenant: Tenant, reason: str, actor: User | None, now: datetime) -> bool:
    """End that a person belongs to the tenant, with all rights and groups there; False: they did not.

    From the commit on nothing that rests on them is usable there. Raises NotManagerError, LastManagerError,
    WrongValueError.
    """
    require_reason(reason)
    with transaction.atomic():
        fence_tenants([tenant.pk])
        require_manager(actor, tenant)
        before = managed([tenant])
        if not Membership.objects.filter(user=person, tenant=tenant, active=True).update(active=False):
            return False
        person.groups.remove(*person.groups.filter(of_tenant__tenant=tenant))
        _withdraw_all(person, tenant, actor, now)
        require_still_managed(before)
        keep_change(
            PeopleAction.MEMBER_ENDED, actor=actor, now=now, tenant=tenant, person=person, reason=reason
        )
    return True


def _withdraw_all(person: User, tenant: Tenant, actor: User | None, now: datetime) -> None:
    """Take every right that the person holds directly on something of the tenant."""
    for held in UserObjectPermission.objects.filter(user=person).select_related("permission", "content_type"):
        place = held.content_object
        right = held.permission.codename
        if getattr(place, "tenant_id", None) == tenant.pk and right in Right.values:
            withdraw_right(to=person, right=Right(right), obj=place, actor=actor, now=now)


def manages_wholly(actor: User | None, person: User) -> bool:
    """Whether the actor manages people in every organisation to which the person belongs. None is a command."""
    if actor is None:
        return True
    theirs = Membership.objects.filter(user=person, active=True)
    mine = tenants_with(actor, Right.MANAGE_PEOPLE).values("pk")
    ever = Membership.objects.filter(user=person, tenant__in=mine)
    return ever.exists() and not theirs.exclude(tenant__in=mine).exists()


def require_wholly(actor: User | None, person: User) -> None:
    """Raise NotWhollyYoursError unless the actor may change the person's account."""
    if not manages_wholly(actor, person):
        raise NotWhollyYoursError


def deactivate(*, person: User, reason: str, actor: User | None, now: datetime) -> bool:
    """Let a person sign in no more and end their sessions; False: it was so. Memberships and rights stay as they are.

    From the commit on nothing that rests on them is usable. Raises NotWhollyYoursError, LastManagerError,
    WrongValueError.
    """
    require_reason(reason)
    with transaction.atomic():
        tenants = list(Tenant.objects.filter(memberships__user=person, memberships__active=True))
        fence_tenants(tenant.pk for tenant in tenants)
        require_wholly(actor, person)
        before = managed(tenants)
        if not User.objects.filter(pk=person.pk, is_active=True).update(is_active=False):
            return False
        require_still_managed(before)
        close_sessions(person)
        PasswordLink.objects.filter(person=person, used_at=None).delete()
        keep_change(PeopleAction.DEACTIVATED, actor=actor, now=now, person=person, reason=reason)
    return True


def activate(*, person: User, actor: User | None, now: datetime) -> bool:
    """Let a person sign in again; False: they could. Raises NotWhollyYoursError."""
    with transaction.atomic():
        require_wholly(actor, person)
        if not User.objects.filter(pk=person.pk, is_active=False).update(is_active=True):
            return False
        keep_change(PeopleAction.ACTIVATED, actor=actor, now=now, person=person)
    return True


def take_factor(
    *, person: User, reason: str, actor: User | None, now: datetime, signed_in_at: datetime | None = None
) -> bool:
    """Remove a person's second factor and codes, as when a phone is lost, and end their sessions; False: they had none.

    Raises NotWhollyYoursError, WrongValueError, ReauthenticationNeeded.
    """
    require_reason(reason)
    with transaction.atomic():
        require_wholly(actor, person)
        require_recent_for_account(actor=actor, signed_in_at=signed_in_at, now=now)
        if not remove_factors(person):
            return False
        close_sessions(person)
        keep_change(PeopleAction.FACTOR_REMOVED, actor=actor, now=now, person=person, reason=reason)
    return True


def change_email(
    *, person: User, email: str, actor: User | None, now: datetime, signed_in_at: datetime | None = None
) -> bool:
    """Give a person another e-mail address, or none; False: it was so. By it a service that has verified it finds them.

    An identity that is linked already stays so. Raises NotWhollyYoursError, WrongValueError, ReauthenticationNeeded.
    """
    _plain(person.username, email)
    with transaction.atomic():
        require_wholly(actor, person)
        require_recent_for_account(actor=actor, signed_in_at=signed_in_at, now=now)
        before = User.objects.select_for_update().get(pk=person.pk).email
        if before == email:
            return False
        User.objects.filter(pk=person.pk).update(email=email)
        keep_change(PeopleAction.EMAIL_CHANGED, actor=actor, now=now, person=person, was=before, became=email)
    return True
