"""The page of the audit log, and its exports."""

from __future__ import annotations

from typing import cast

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from accounts.guards import On, guarded
from accounts.models import User
from accounts.rights import Right, tenants_with
from accounts.zones import in_utc
from console import audit_export
from console.audit_frame import Row
from console.audit_log import ACTIONS, PAGE, PEOPLE, RIGHTS, Filters, page_of, sources
from runs.ledger import chain_problem
from runs.models import Run
from runs.pages import words
from runs.pages.paging import paging
from runs.views.frame import Context, console_page, person_of, shell, show


@console_page
@in_utc
@guarded(On.PERSON)
@require_safe
def audit(request: HttpRequest) -> HttpResponse:
    """Newest first. `?verify` reads the logs of the runs on the page and says whether their chains are whole."""
    person, filters = person_of(request), Filters.of(request)
    found = sources(person, filters)
    pages = max(1, -(-sum(source.rows.count() for source in found) // PAGE))
    page = min(filters.page, pages)
    entries = page_of(found, page)
    context: Context = {
        "entries": entries,
        "filters": {**filters.values(), "first": filters.first, "last": filters.last},
        "people": _people(person),
        "actions": _actions(),
        "paging": paging(page, pages, lambda n: filters.url(page=n)),
        "scope_text": scope(person),
        "exports": {
            kind: reverse("audit-export", args=[kind]) + filters.url() for kind in audit_export.KINDS
        },
        "verify_url": filters.url(page=page, verify=1),
        "verified": _verified(entries) if "verify" in request.GET else "",
    }
    return show(request, "console/audit.html", {**shell(request), **context})


@console_page
@guarded(On.PERSON)
@require_safe
def export(request: HttpRequest, kind: str) -> HttpResponse:
    """All entries of the filter as a file, written while it is read."""
    if kind not in audit_export.KINDS:
        raise Http404
    # A streaming answer is none of this class, and all that the frame does to one can be done to it.
    return cast(HttpResponse, audit_export.response(request, person_of(request), kind))


def scope(person: User) -> str:
    """What of the log this person sees, as a sentence."""
    whole = [tenant.name for tenant in tenants_with(person, Right.SEE_AUDIT)]
    if not whole:
        return _("You see what you did and tried, and which rights you gave, got or lost.")
    text = _("You see all that people did and tried in %(tenants)s, and beside it what you did elsewhere.")
    return text % {"tenants": words.joined(whole)}


def _actions() -> list[Row]:
    """The actions to choose from."""
    rights = {"value": RIGHTS, "label": _("Grant or withdraw a right")}
    people = {"value": PEOPLE, "label": _("Change people, or sign in")}
    return [*({"value": code, "label": words[0]} for code, words in ACTIONS.items()), rights, people]


def _people(person: User) -> list[str]:
    """The people whom the filter offers: those of the organisations whose log one may see, and oneself."""
    audited = tenants_with(person, Right.SEE_AUDIT)
    members = User.objects.filter(memberships__tenant__in=audited).distinct()
    return sorted({person.shown_name, *(member.shown_name for member in members)})


def _verified(entries: list[Row]) -> str:
    """Whether the hash chains of the runs on the page are whole, their logs read just now."""
    named = {str(entry["subject"]).partition(":")[0].partition(" ")[0] for entry in entries}
    runs = list(Run.objects.filter(pk__in=named).order_by("pk").values_list("pk", flat=True))
    broken = [f"{run}: {problem}" for run in runs if (problem := chain_problem(run))]
    if broken:
        return _("A chain of hashes is broken. %(which)s") % {"which": words.clauses(broken)}
    text = ngettext(
        "Chain verified: the log of the %(number)d run on this page is as it was written.",
        "Chains verified: the logs of the %(number)d runs on this page are as they were written.",
        len(runs),
    )
    return text % {"number": len(runs)}
