"""The people of an organisation: who they are, what they may, and the changes that a manager can make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts import groups, people
from accounts.guards import On, guarded
from accounts.identities import services_of
from accounts.models import Membership, SignIn, SignInOutcome, Tenant, User
from accounts.passwords import make_link
from accounts.people_log import PeopleRefusedError, WrongValueError
from accounts.rights import Right
from accounts.second_factors import has_factor, with_factor
from console.people import places
from console.people.frame import (
    SHOWN_ONCE,
    NoOrganisationError,
    Said,
    managed_tenants,
    once,
    page,
    refusing,
    shut_out,
    tenant_of,
)
from console.signing import oidc
from runs.clock import database_now
from runs.views.frame import (
    Context,
    console_page,
    kept_texts,
    new_submission,
    person_of,
    signed_in_at,
    typed,
)

Row = dict[str, Any]


@console_page
@guarded(On.TENANT, reads=Right.MANAGE_PEOPLE)
@require_safe
def people_list(request: HttpRequest) -> HttpResponse:
    """Everybody who belongs, or belonged, to an organisation whose people one manages."""
    try:
        tenant = tenant_of(request)
    except NoOrganisationError as error:
        return shut_out(request, error)
    context = {**shared(request, tenant), "people": _rows(tenant)}
    return page(request, "console/people.html", context)


def shared(request: HttpRequest, tenant: Tenant) -> Context:
    """What all pages about an organisation's people show."""
    return {
        "organisation": {"slug": tenant.slug, "name": tenant.name},
        "organisations": [{"slug": t.slug, "name": t.name} for t in managed_tenants(person_of(request))],
        "list_url": f"{reverse('people')}?organisation={tenant.slug}",
        "new_url": f"{reverse('person-new')}?organisation={tenant.slug}",
        "organisations_url": reverse("organisations"),
        "groups_url": f"{reverse('groups')}?organisation={tenant.slug}",
        "submission": new_submission(),
    }


def _rows(tenant: Tenant) -> list[Row]:
    """Four queries, whatever the number of people."""
    found = list(
        Membership.objects.filter(tenant=tenant)
        .select_related("user")
        .order_by("-active", "user__display_name", "user__username")
    )
    ids = [membership.user_id for membership in found]
    secured = with_factor(ids)
    titles: dict[UUID, list[str]] = {}
    pairs = User.groups.through.objects.filter(user_id__in=ids, group__of_tenant__tenant=tenant)
    for user_id, title in pairs.values_list("user_id", "group__of_tenant__title").order_by(
        "group__of_tenant__title"
    ):
        titles.setdefault(user_id, []).append(title)
    return [_row(m, titles.get(m.user_id, []), m.user_id in secured) for m in found]


def _row(membership: Membership, titles: list[str], factor: bool) -> Row:
    user = membership.user
    return {
        "name": user.shown_name,
        "username": user.username,
        "url": reverse("person", args=[user.pk]) + f"?organisation={membership.tenant.slug}",
        "state": _state(membership),
        "groups": titles,
        "factor": factor,
        "last": user.last_login,
    }


def _state(membership: Membership) -> str:
    if not membership.user.is_active:
        return _("cannot sign in")
    return _("belongs") if membership.active else _("belongs no more")


@console_page
@guarded(On.TENANT, acts=(Right.MANAGE_PEOPLE,), reads=Right.MANAGE_PEOPLE)
@require_http_methods(["GET", "HEAD", "POST"])
def person_new(request: HttpRequest) -> HttpResponse:
    """Make a person, and show the link by which they set a password: once, to who made them."""
    try:
        tenant = tenant_of(request)
    except NoOrganisationError as error:
        return shut_out(request, error)
    if request.method != "POST":
        return _new_page(request, tenant)
    return refusing(
        request,
        lambda: _make(request, tenant),
        lambda error: _new_page(request, tenant, error),
        subject=f"person {typed(request, 'username')}",
        tenant=tenant,
    )


def _new_page(request: HttpRequest, tenant: Tenant, error: PeopleRefusedError | None = None) -> HttpResponse:
    values = {name: request.POST.get(name, "") for name in ("username", "display_name", "email")}
    return page(request, "console/person_new.html", {**shared(request, tenant), "values": values}, error)


def _make(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    def do() -> Said:
        actor, now = person_of(request), database_now()
        made = people.make_person(
            tenant=tenant, username=typed(request, "username"), display_name=typed(request, "display_name"),
            email=typed(request, "email"), actor=actor, now=now,
        )  # fmt: skip
        _show_link(request, made, make_link(person=made, actor=actor, now=now))
        return {"text": _("%(name)s was made.") % {"name": made.shown_name}}

    return once(request, tenant, do, f"{reverse('people')}?organisation={tenant.slug}")


def _show_link(request: HttpRequest, person: User, token: str) -> None:
    """Keep the link until the next page of this session shows it."""
    url = request.build_absolute_uri(reverse("password-link", args=[token]))
    request.session[SHOWN_ONCE] = {"name": person.shown_name, "url": url}


@console_page
@guarded(On.TENANT, acts=(Right.MANAGE_PEOPLE,), reads=Right.MANAGE_PEOPLE)
@require_http_methods(["GET", "HEAD", "POST"])
def person_page(request: HttpRequest, person_id: UUID) -> HttpResponse:
    """One person: GET shows what they are and may; POST makes one change (`do`)."""
    try:
        tenant = tenant_of(request)
    except NoOrganisationError as error:
        return shut_out(request, error)
    membership = member_of(tenant, person_id)
    if membership is None:
        raise Http404
    if request.method != "POST":
        return _person(request, membership)
    return refusing(
        request,
        lambda: _change(request, membership),
        lambda error: _person(request, membership, error),
        subject=f"person {membership.user.username}",
        tenant=tenant,
    )


def member_of(tenant: Tenant, person_id: UUID) -> Membership | None:
    """The membership of somebody who belongs, or belonged, to the organisation."""
    found = Membership.objects.select_related("user", "tenant")
    return found.filter(user_id=person_id, tenant=tenant).first()


def _person(
    request: HttpRequest, membership: Membership, error: PeopleRefusedError | None = None
) -> HttpResponse:
    person, tenant = membership.user, membership.tenant
    mine = [group.title for group in _groups_of(person, tenant)]
    context = {
        **shared(request, tenant),
        "person": {
            "name": person.shown_name, "username": person.username, "email": person.email,
            "state": _state(membership), "belongs": membership.active, "active": person.is_active,
            "factor": has_factor(person), "last": person.last_login, "groups": mine,
            "password": person.has_usable_password(), "services": _services(person),
        },
        "ends": _ends(membership),
        "wholly": people.manages_wholly(person_of(request), person),
        "held": places.held(person, tenant),
        "places": places.choices(tenant),
        "rights": [{"value": right.value, "label": right.label} for right in Right],
        "sign_ins": _sign_ins(person),
        "values": {
            **{name: request.POST.get(name, "") for name in ("right", "place", "run")},
            "email": request.POST.get("email", kept_texts(request).get("email", person.email)),
        },
    }  # fmt: skip
    return page(request, "console/person.html", context, error)


def _ends(membership: Membership) -> dict[str, str]:
    """Where it is asked before something of the person ends."""
    names = {
        "membership": "membership",
        "account": "account",
        "factor": "second-factor",
        "identity": "identity",
    }
    query = f"?organisation={membership.tenant.slug}"
    return {
        key: reverse("person-end", args=[membership.user_id, what]) + query for key, what in names.items()
    }


def _services(person: User) -> list[str]:
    """The other services that know this person, by their names."""
    names = {app.provider_id: str(app.name) for app in oidc.services()}
    return [names.get(service, service) for service in services_of(person)]


def _groups_of(person: User, tenant: Tenant) -> Any:
    return tenant.groups.filter(group__user=person).order_by("title")


def _sign_ins(person: User) -> list[Row]:
    """The last few sign-ins and refused ones."""
    words = dict(SignInOutcome.choices)
    return [
        {"at": entry.at, "what": words.get(entry.outcome, entry.outcome), "from": entry.ip or "–"}
        for entry in SignIn.objects.filter(person=person).order_by("-at", "-pk")[:5]
    ]


def _change(request: HttpRequest, membership: Membership) -> HttpResponse:
    do = CHANGES.get(request.POST.get("do", ""))
    if do is None:
        raise WrongValueError("", _("Choose what to change."))
    to = f"{reverse('person', args=[membership.user_id])}?organisation={membership.tenant.slug}"
    return once(request, membership.tenant, lambda: do(request, membership), to)


def _add(request: HttpRequest, membership: Membership) -> Said:
    person, tenant = membership.user, membership.tenant
    people.add_member(person=person, tenant=tenant, actor=person_of(request), now=database_now())
    return {"text": _("%(name)s belongs to the organisation again.") % {"name": person.shown_name},
            "detail": _("Rights and groups are given anew.")}  # fmt: skip


def _activate(request: HttpRequest, membership: Membership) -> Said:
    person = membership.user
    people.activate(person=person, actor=person_of(request), now=database_now())
    return {"text": _("%(name)s can sign in again.") % {"name": person.shown_name}}


def _link(request: HttpRequest, membership: Membership) -> Said:
    person = membership.user
    token = make_link(
        person=person, actor=person_of(request), now=database_now(), signed_in_at=signed_in_at(request)
    )
    _show_link(request, person, token)
    return {"text": _("A link was made. Earlier ones work no more.")}


def _email(request: HttpRequest, membership: Membership) -> Said:
    person, email = membership.user, typed(request, "email")
    changed = people.change_email(
        person=person, email=email, actor=person_of(request), now=database_now(),
        signed_in_at=signed_in_at(request),
    )  # fmt: skip
    if not changed:
        return {"text": _("It was so already.")}
    return {"text": _("The e-mail address of %(name)s was changed.") % {"name": person.shown_name}}


def _give(request: HttpRequest, membership: Membership) -> Said:
    return give(request, membership.user, membership.tenant)


def _take(request: HttpRequest, membership: Membership) -> Said:
    return take(request, membership.user, membership.tenant)


def give(request: HttpRequest, to: Any, tenant: Tenant) -> Said:
    """Give the right that the form names, to a person or a group."""
    run = typed(request, "run")
    place = places.place_of(tenant, f"run:{run}" if run else request.POST.get("place", ""))
    right = places.right_of(request.POST.get("right", ""), place)
    given = groups.give_right(
        to=to, right=right, place=place, tenant=tenant, actor=person_of(request), now=database_now()
    )
    facts = {"right": right.label, "place": places.name_of(place)}
    if given:
        return {"text": _("“%(right)s” on %(place)s was given.") % facts}
    return {"text": _("“%(right)s” on %(place)s was held already.") % facts}


def take(request: HttpRequest, from_: Any, tenant: Tenant) -> Said:
    """Take the right that the form names."""
    place = places.place_of(tenant, request.POST.get("place", ""))
    right = places.right_of(request.POST.get("right", ""), place)
    groups.take_right(
        to=from_, right=right, place=place, tenant=tenant, actor=person_of(request), now=database_now()
    )
    facts = {"right": right.label, "place": places.name_of(place)}
    return {"text": _("“%(right)s” on %(place)s was withdrawn.") % facts,
            "detail": _("From now on nothing can rest on it.")}  # fmt: skip


CHANGES: dict[str, Callable[[HttpRequest, Membership], Said]] = {
    "add": _add,
    "activate": _activate,
    "link": _link,
    "email": _email,
    "give": _give,
    "take": _take,
}
