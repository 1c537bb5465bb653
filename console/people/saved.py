"""The pages on which a view is saved, put in order and deleted."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.guards import On, guarded
from accounts.models import SavedView, Tenant
from accounts.people_log import PeopleRefusedError, WrongValueError
from accounts.saved_views import delete_view, move_view, save_view, views_seen_by
from console.inbox import Asked
from console.people.frame import managed_tenants, page, refusing
from console.saved_views import told
from runs.clock import database_now
from runs.views.frame import console_page, number, person_of, typed

MINE = "me"
SAVE, CHANGE = "save view", "change view"


@console_page
@guarded(On.PERSON)
@require_http_methods(["GET", "HEAD", "POST"])
def view_new(request: HttpRequest) -> HttpResponse:
    """GET asks under which name the inbox's view is to be kept, and for whom; POST keeps it and shows it."""
    if request.method != "POST":
        return _form(request)
    try:
        tenant = _for(request)
    except WrongValueError as error:
        return _form(request, error)
    if tenant:
        return refusing(
            request, lambda: _save(request, tenant), lambda error: _form(request, error), tenant=tenant,
            subject=f"view {typed(request, 'name')}", action=SAVE,
        )  # fmt: skip
    try:
        return _save(request, None)
    except PeopleRefusedError as error:
        return _form(request, error)


def _form(request: HttpRequest, error: PeopleRefusedError | None = None) -> HttpResponse:
    query = _query(request)
    context = {
        "query": query,
        "told": told(Asked.read(QueryDict(query[1:]))),
        "tenants": [{"slug": x.slug, "name": x.name} for x in managed_tenants(person_of(request))],
        "values": {"name": request.POST.get("name", ""), "for": request.POST.get("for") or MINE},
        "back_url": reverse("inbox") + query,
    }
    return page(request, "console/view_new.html", context, error)


def _query(request: HttpRequest) -> str:
    """The view that is to be kept, of what the inbox knows: nothing else of an address is."""
    sent = QueryDict(typed(request, "query").removeprefix("?")) if request.method == "POST" else request.GET
    return Asked.read(sent).url(page=1)


def _for(request: HttpRequest) -> Tenant | None:
    """The organisation for which it is; None: for oneself. Raises WrongValueError."""
    slug = request.POST.get("for") or MINE
    if slug == MINE:
        return None
    tenant = person_of(request).tenants().filter(slug=slug.replace("\x00", "")).first()
    if tenant is None:
        raise WrongValueError("for", _("Choose for whom the view is."))
    return tenant


def _save(request: HttpRequest, tenant: Tenant | None) -> HttpResponse:
    query, name = _query(request), typed(request, "name")
    kept = save_view(person=person_of(request), tenant=tenant, name=name, query=query, now=database_now())
    return HttpResponseRedirect(f"{reverse('inbox')}{kept.query}&kept={kept.pk}")


@console_page
@guarded(On.PERSON)
@require_POST
def views_change(request: HttpRequest) -> HttpResponse:
    """Put one view further up or down, or delete it (`do`)."""
    asked = number(request.POST.get("view"))
    view = views_seen_by(person_of(request)).filter(pk=-1 if asked is None else asked).first()
    if view is None:
        raise Http404
    return refusing(
        request, lambda: _change(request, view), lambda error: _back(), tenant=view.tenant,
        subject=f"view {view.name}", action=CHANGE,
    )  # fmt: skip


def _change(request: HttpRequest, view: SavedView) -> HttpResponse:
    person = person_of(request)
    match request.POST.get("do"):
        case "up" | "down" as way:
            move_view(person=person, view=view, up=way == "up")
        case "delete":
            delete_view(person=person, view=view, now=database_now())
    return _back()


def _back() -> HttpResponse:
    return HttpResponseRedirect(f"{reverse('settings')}?saved=views#saved-views")
