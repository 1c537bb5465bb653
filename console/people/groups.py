"""The groups of an organisation: who is in them, and which rights they hold on what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts import groups
from accounts.guards import On, guarded
from accounts.models import TenantGroup, User
from accounts.people_log import PeopleRefusedError, WrongValueError
from accounts.rights import Right
from console.people import places
from console.people.frame import NoOrganisationError, Said, once, page, refusing, shut_out, tenant_of
from console.people.people import give, shared, take
from runs.clock import database_now
from runs.views.frame import console_page, person_of, typed, uuid_of

Row = dict[str, Any]


@console_page
@guarded(On.TENANT, acts=(Right.MANAGE_PEOPLE,), reads=Right.MANAGE_PEOPLE)
@require_http_methods(["GET", "HEAD", "POST"])
def group_list(request: HttpRequest) -> HttpResponse:
    """The groups of an organisation whose people one manages; POST makes another."""
    try:
        tenant = tenant_of(request)
    except NoOrganisationError as error:
        return shut_out(request, error)

    def shown(error: PeopleRefusedError | None = None) -> HttpResponse:
        found = tenant.groups.select_related("group").order_by("title")
        context = {
            "groups": [_row(group) for group in found],
            "values": {"title": request.POST.get("title", "")},
        }
        return page(request, "console/groups.html", {**shared(request, tenant), **context}, error)

    def make() -> Said:
        title = typed(request, "title")
        groups.make_group(tenant=tenant, title=title, actor=person_of(request), now=database_now())
        return {"text": _("The group “%(title)s” was made.") % {"title": title}}

    if request.method != "POST":
        return shown()
    to = f"{reverse('groups')}?organisation={tenant.slug}"
    return refusing(
        request, lambda: once(request, tenant, make, to), shown, tenant=tenant,
        subject=f"group {typed(request, 'title')}",
    )  # fmt: skip


def _row(group: TenantGroup) -> Row:
    return {
        "title": group.title,
        "url": reverse("group", args=[group.pk]) + f"?organisation={group.tenant.slug}",
        "members": [member.shown_name for member in _members(group)],
        "held": places.held(group.group, group.tenant),
    }


def _members(group: TenantGroup) -> Any:
    return User.objects.filter(groups=group.pk).order_by("display_name", "username")


@console_page
@guarded(On.TENANT, acts=(Right.MANAGE_PEOPLE,), reads=Right.MANAGE_PEOPLE)
@require_http_methods(["GET", "HEAD", "POST"])
def group_page(request: HttpRequest, group_id: int) -> HttpResponse:
    """One group: GET shows it, POST makes one change (`do`)."""
    try:
        tenant = tenant_of(request)
    except NoOrganisationError as error:
        return shut_out(request, error)
    group = TenantGroup.objects.select_related("group", "tenant").filter(pk=group_id, tenant=tenant).first()
    if group is None:
        raise Http404
    if request.method != "POST":
        return _group(request, group)
    return refusing(
        request, lambda: _change(request, group), lambda error: _group(request, group, error), tenant=tenant,
        subject=f"group {group.title}",
    )  # fmt: skip


def _group(request: HttpRequest, group: TenantGroup, error: PeopleRefusedError | None = None) -> HttpResponse:
    members = list(_members(group))
    others = User.objects.filter(memberships__tenant=group.tenant, memberships__active=True, is_active=True)
    values = {name: request.POST.get(name, "") for name in ("title", "person", "right", "place", "run")}
    context = {
        "group": {"title": group.title, "empty": not members and not places.held(group.group, group.tenant)},
        "members": [{"id": str(m.pk), "name": m.shown_name, "username": m.username} for m in members],
        "others": [
            {"value": str(person.pk), "label": f"{person.shown_name} ({person.username})"}
            for person in others.exclude(groups=group.pk).order_by("display_name", "username")
        ],
        "held": places.held(group.group, group.tenant),
        "places": places.choices(group.tenant),
        "rights": [{"value": right.value, "label": right.label} for right in Right],
        "values": {**values, "title": values["title"] or group.title},
    }
    return page(request, "console/group.html", {**shared(request, group.tenant), **context}, error)


def _change(request: HttpRequest, group: TenantGroup) -> HttpResponse:
    if request.POST.get("do") == "delete":
        return _delete(request, group)
    do = CHANGES.get(request.POST.get("do", ""))
    if do is None:
        raise WrongValueError("", _("Choose what to change."))
    to = f"{reverse('group', args=[group.pk])}?organisation={group.tenant.slug}"
    return once(request, group.tenant, lambda: do(request, group), to)


def _delete(request: HttpRequest, group: TenantGroup) -> HttpResponse:
    def do() -> Said:
        groups.delete_group(group=group, actor=person_of(request), now=database_now())
        return {"text": _("The group “%(title)s” was deleted.") % {"title": group.title}}

    done = once(request, group.tenant, do, f"{reverse('groups')}?organisation={group.tenant.slug}")
    return HttpResponseRedirect(done["Location"])


def _rename(request: HttpRequest, group: TenantGroup) -> Said:
    title = typed(request, "title")
    groups.rename_group(group=group, title=title, actor=person_of(request), now=database_now())
    return {"text": _("The group is called “%(title)s” now.") % {"title": title}}


def _join(request: HttpRequest, group: TenantGroup) -> Said:
    person = _person(request, group)
    groups.join_group(group=group, person=person, actor=person_of(request), now=database_now())
    return {"text": _("%(name)s is in the group.") % {"name": person.shown_name}}


def _leave(request: HttpRequest, group: TenantGroup) -> Said:
    person = _person(request, group)
    groups.leave_group(group=group, person=person, actor=person_of(request), now=database_now())
    return {"text": _("%(name)s is not in the group any more.") % {"name": person.shown_name}}


def _person(request: HttpRequest, group: TenantGroup) -> User:
    """Whom the form names, of those who belong or belonged to the organisation. Raises WrongValueError."""
    id_ = uuid_of(request.POST.get("person", ""))
    found = User.objects.filter(pk=id_, memberships__tenant=group.tenant).first() if id_ else None
    if found is None:
        raise WrongValueError("person", _("Choose a person."))
    return found


def _give(request: HttpRequest, group: TenantGroup) -> Said:
    return give(request, group.group, group.tenant)


def _take(request: HttpRequest, group: TenantGroup) -> Said:
    return take(request, group.group, group.tenant)


CHANGES: dict[str, Callable[[HttpRequest, TenantGroup], Said]] = {
    "rename": _rename,
    "join": _join,
    "leave": _leave,
    "give": _give,
    "take": _take,
}
