"""Organisations: who may make them, their names, if their people must have a second factor, and their agents."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts import organisations
from accounts.guards import On, guarded
from accounts.models import Tenant, User
from accounts.organisations import NotOrganiserError, may_organise, organisers
from accounts.people_log import PeopleRefusedError, WrongValueError
from accounts.rights import Right
from console.people.frame import Said, managed_tenants, once, page, refusing, shut_out
from runs import actions
from runs.clock import database_now
from runs.models import Agent
from runs.views.frame import console_page, new_submission, person_of, typed


@console_page
@guarded(On.TENANT, acts=(Right.MANAGE_PEOPLE,), reads=Right.MANAGE_PEOPLE)
@require_http_methods(["GET", "HEAD", "POST"])
def organisation_list(request: HttpRequest) -> HttpResponse:
    """The organisations that one manages; POST makes another, or lets somebody else make them."""
    person = person_of(request)
    if not may_organise(person) and not managed_tenants(person):
        return shut_out(request, NotOrganiserError())
    if request.method != "POST":
        return _list(request)
    return refusing(
        request, lambda: _change(request), lambda error: _list(request, error), subject="organisations",
        action="end organiser" if request.POST.get("do") == "end" else "",
    )  # fmt: skip


def _seen(person: User) -> list[Tenant]:
    if may_organise(person):
        return list(Tenant.objects.order_by("name", "slug"))
    return managed_tenants(person)


def _list(request: HttpRequest, error: PeopleRefusedError | None = None) -> HttpResponse:
    person = person_of(request)
    organises = may_organise(person)
    context = {
        "organisations": [_row(tenant) for tenant in _seen(person)],
        "organises": organises,
        "organisers": [{"name": p.shown_name, "username": p.username} for p in organisers()]
        if organises
        else [],
        "values": {name: request.POST.get(name, "") for name in ("slug", "name", "username")},
        "submission": new_submission(),
    }
    return page(request, "console/organisations.html", context, error)


def _row(tenant: Tenant) -> dict[str, object]:
    return {
        "slug": tenant.slug,
        "name": tenant.name,
        "second_factor": tenant.second_factor,
        "url": reverse("organisation", args=[tenant.slug]),
    }


def _change(request: HttpRequest) -> HttpResponse:
    match request.POST.get("do", ""):
        case "make":
            return _make(request)
        case "let" | "end" as do:
            return _organiser(request, let=do == "let")
        case _:
            raise WrongValueError("", _("Choose what to change."))


def _make(request: HttpRequest) -> HttpResponse:
    """The row that keeps the form's id is the new organisation's, so a form sent twice meets a taken name."""
    slug, name = typed(request, "slug"), typed(request, "name")
    made = organisations.make_tenant(slug=slug, name=name, actor=person_of(request), now=database_now())
    text = _("The organisation “%(name)s” was made. You manage its people.") % {"name": made.name}
    return once(request, made, lambda: {"text": text}, reverse("organisations"))


def _organiser(request: HttpRequest, *, let: bool) -> HttpResponse:
    found = User.objects.filter(username=typed(request, "username"), is_active=True).first()
    if found is None:
        raise WrongValueError("username", _("There is nobody with this name who can sign in."))
    change = organisations.make_organiser if let else organisations.end_organiser
    change(person=found, actor=person_of(request), now=database_now())
    return HttpResponseRedirect(reverse("organisations"))


@console_page
@guarded(On.TENANT, acts=(Right.MANAGE_PEOPLE,), reads=Right.MANAGE_PEOPLE)
@require_http_methods(["GET", "HEAD", "POST"])
def organisation_page(request: HttpRequest, slug: str) -> HttpResponse:
    """One organisation: its name, whether a second factor is asked of its people, and the agents that it uses."""
    tenant = next((t for t in _seen(person_of(request)) if t.slug == slug), None)
    if tenant is None:
        raise Http404
    if request.method != "POST":
        return _organisation(request, tenant)
    return refusing(
        request, lambda: _do(request, tenant), lambda error: _organisation(request, tenant, error),
        subject=f"organisation {tenant.slug}", tenant=tenant,
    )  # fmt: skip


def _do(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    return _use(request, tenant) if request.POST.get("do") == "use" else _save(request, tenant)


def _organisation(
    request: HttpRequest, tenant: Tenant, error: PeopleRefusedError | None = None
) -> HttpResponse:
    sent = request.method == "POST" and request.POST.get("do") != "use"
    context = {
        "organisation": _row(tenant),
        "list_url": reverse("organisations"),
        "agents": list(Agent.objects.filter(tenant=tenant).order_by("name").values("name", "title")),
        "usable": [{"value": name, "label": f"{name}: {title}"} for name, title in actions.usable(tenant)],
        "values": {
            **{name: request.POST.get(name, "") for name in ("agent", "title")},
            "name": request.POST.get("name", "") if sent else tenant.name,
            "second_factor": bool(request.POST.get("second_factor")) if sent else tenant.second_factor,
        },
        "submission": new_submission(),
    }
    return page(request, "console/organisation.html", context, error)


def _save(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    def do() -> Said:
        changed = organisations.change_tenant(
            tenant=tenant, name=typed(request, "name"), second_factor=bool(request.POST.get("second_factor")),
            actor=person_of(request), now=database_now(),
        )  # fmt: skip
        return {"text": _("The organisation was changed.") if changed else _("It was so already.")}

    return once(request, tenant, do, reverse("organisation", args=[tenant.slug]))


def _use(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    def do() -> Said:
        made = actions.add_agent(
            tenant=tenant, name=typed(request, "agent"), title=typed(request, "title"), actor=person_of(request),
            now=database_now(),
        )  # fmt: skip
        facts = {"title": made.title, "name": made.name}
        return {
            "text": _("The organisation uses “%(title)s” (%(name)s) now. Rights on it can be given.") % facts
        }

    return once(request, tenant, do, reverse("organisation", args=[tenant.slug]))
