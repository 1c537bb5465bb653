"""On what rights are held, as forms name it and as pages tell it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import Group
from django.utils.translation import gettext as _
from guardian.models import GroupObjectPermission, UserObjectPermission

from accounts.models import Tenant, User
from accounts.people_log import WrongValueError
from accounts.permissions import ON_AGENT, ON_RUN, ON_TENANT, Right
from runs.models import Agent, Run

Place = Tenant | Agent | Run
Row = dict[str, Any]


def place_of(tenant: Tenant, text: str) -> Place:
    """The object that a form names, of this organisation. Raises WrongValueError."""
    kind, _colon, key = text.replace("\x00", "").partition(":")
    found: Place | None = None
    if kind == "organisation":
        found = tenant
    elif kind == "agent" and key.isascii() and key.isdecimal() and len(key) < 10:
        found = Agent.objects.filter(tenant=tenant, pk=int(key)).first()
    elif kind == "run":
        found = Run.objects.filter(tenant=tenant, pk=key.strip()).first()
    if found is None:
        raise WrongValueError("place", _("Choose on what the right is held."))
    return found


def right_of(text: str, place: Place) -> Right:
    """The right that a form names, if it can be held there. Raises WrongValueError."""
    can = ON_TENANT if isinstance(place, Tenant) else ON_AGENT if isinstance(place, Agent) else ON_RUN
    if text in {right.value for right in can}:
        return Right(text)
    raise WrongValueError("right", _("Choose a right that can be held there."))


def name_of(place: Place) -> str:
    """The place in words."""
    match place:
        case Tenant():
            return _("the whole organisation")
        case Agent():
            return _("the agent %(name)s") % {"name": place.title}
        case _:
            return _("the run %(id)s") % {"id": place.pk}


def code_of(place: Place) -> str:
    """As `place_of` reads it."""
    match place:
        case Tenant():
            return "organisation"
        case Agent():
            return f"agent:{place.pk}"
        case _:
            return f"run:{place.pk}"


def choices(tenant: Tenant) -> list[Row]:
    """The organisation and its agents; a run is named by its id."""
    places: list[Place] = [tenant, *Agent.objects.filter(tenant=tenant).order_by("name")]
    return [{"value": code_of(place), "label": name_of(place)} for place in places]


def held(of: User | Group, tenant: Tenant) -> list[Row]:
    """The rights that a person holds directly, or a group, in the organisation."""
    rows: Any
    if isinstance(of, User):
        rows = UserObjectPermission.objects.filter(user=of)
    else:
        rows = GroupObjectPermission.objects.filter(group=of)
    found = rows.select_related("permission", "content_type").order_by("permission__codename", "object_pk")
    return list(_held(found, tenant))


def _held(rows: Any, tenant: Tenant) -> Iterator[Row]:
    for row in rows:
        place = row.content_object
        if isinstance(place, Tenant | Agent | Run) and place.tenant_id == tenant.pk:
            right = row.permission.codename
            label = Right(right).label if right in Right.values else right
            yield {"right": right, "label": label, "place": code_of(place), "place_label": name_of(place)}
