"""Lists of runs kept under a name, of one person or for all people of a tenant.

One for all is made, ordered and deleted by those who manage people there, since it stands in everybody's navigation; a
person's own are that person's alone.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _

from accounts.fence import fence_shared
from accounts.models import PeopleAction, SavedView, Tenant, User
from accounts.people_log import (
    PeopleRefusedError,
    TakenError,
    WrongValueError,
    keep_change,
    require_manager,
)
from accounts.rights import Right, tenants_with

LONGEST_NAME: Final = 60
LONGEST_QUERY: Final = 1000
#: How many one person, or one tenant, keeps at most: all are counted whenever a page is shown.
MOST: Final = 12


class TooManyViewsError(PeopleRefusedError):
    """So many are kept already. Delete one first."""

    code = "too_many"

    @property
    def sentence(self) -> str:
        return _("%(most)d views are kept already, and no more can be. Delete one first.") % {"most": MOST}


def views_seen_by(person: User) -> QuerySet[SavedView]:
    """The person's own first, then those of each of their tenants, each as they were put in order."""
    found = SavedView.objects.filter(Q(person=person) | Q(tenant__in=person.tenants().order_by()))
    return found.select_related("tenant").order_by(
        F("tenant__name").asc(nulls_first=True), "tenant_id", "place", "pk"
    )


def views_changed_by(person: User) -> QuerySet[SavedView]:
    """Those that the person may put in order and delete, in the same order."""
    managed = tenants_with(person, Right.MANAGE_PEOPLE)
    return views_seen_by(person).filter(Q(person=person) | Q(tenant__in=managed.values("pk")))


def save_view(*, person: User, tenant: Tenant | None, name: str, query: str, now: datetime) -> SavedView:
    """Keep the query under a name, for the person or for all of the tenant; the same once more changes nothing.

    Raises NotManagerError, TakenError, TooManyViewsError, WrongValueError.
    """
    name = " ".join(name.split())
    if not name or "\x00" in name or len(name) > LONGEST_NAME:
        message = _("Enter a name of at most %(limit)d characters.") % {"limit": LONGEST_NAME}
        raise WrongValueError("name", message)
    if not query.startswith("?") or "\x00" in query or len(query) > LONGEST_QUERY:
        raise WrongValueError("name", _("This view cannot be kept: what it looks for is too long."))
    with transaction.atomic():
        kept = _held(person, tenant)
        same = kept.filter(name__iexact=name).first()
        if same and same.query == query:
            return same
        if same:
            raise TakenError("name", name)
        if kept.count() >= MOST:
            raise TooManyViewsError
        return _made(person, tenant, name, query, now)


def _made(person: User, tenant: Tenant | None, name: str, query: str, now: datetime) -> SavedView:
    last = _of(person, tenant).order_by("-place").values_list("place", flat=True).first() or 0
    try:
        with transaction.atomic():
            made = SavedView.objects.create(
                person=None if tenant else person, tenant=tenant, by=person, name=name, query=query,
                place=last + 1, at=now,
            )  # fmt: skip
    except IntegrityError as error:
        raise TakenError("name", name) from error
    if tenant:
        keep_change(PeopleAction.VIEW_SHARED, actor=person, now=now, tenant=tenant, name=name)
    return made


def move_view(*, person: User, view: SavedView, up: bool) -> None:
    """Put it one place further up, or down; the first goes no further up, the last no further down.

    Raises NotManagerError.
    """
    with transaction.atomic():
        order = list(_held(person, view.tenant).order_by("place", "pk"))
        at = next((place for place, kept in enumerate(order) if kept.pk == view.pk), None)
        if at is None:
            return
        order.insert(max(0, at - 1) if up else at + 1, order.pop(at))
        for place, kept in enumerate(order):
            kept.place = place
        SavedView.objects.bulk_update(order, ["place"])


def delete_view(*, person: User, view: SavedView, now: datetime) -> None:
    """Keep it no longer. Raises NotManagerError."""
    with transaction.atomic():
        gone, _rows = _held(person, view.tenant).filter(pk=view.pk).delete()
        if gone and view.tenant:
            keep_change(PeopleAction.VIEW_REMOVED, actor=person, now=now, tenant=view.tenant, name=view.name)


def _held(person: User, tenant: Tenant | None) -> QuerySet[SavedView]:
    """The views of the person or the tenant, which nobody else changes meanwhile. Raises NotManagerError."""
    if tenant is None:
        User.objects.select_for_update(no_key=True).get(pk=person.pk)
    else:
        fence_shared(tenant.pk)
        require_manager(person, tenant)
        Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
    return _of(person, tenant)


def _of(person: User, tenant: Tenant | None) -> QuerySet[SavedView]:
    return SavedView.objects.filter(tenant=tenant) if tenant else SavedView.objects.filter(person=person)
