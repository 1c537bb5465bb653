"""Constraints that are held here: those that stand, another one, another text of one, its end, and how far that got."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.models import Tenant, User
from accounts.rights import Right, holders, tenants_with, why_not
from approvals.expressions import NAMES
from runs import actions, constrained
from runs.access import agents_for, statements_for
from runs.actions.constraints import ADD, AMEND, WITHDRAW, place_of
from runs.machine.transitions import Refused
from runs.models import Agent, Run, Statement
from runs.pages import revoking, who, words
from runs.pages.word_diff import word_diff
from runs.sources import held
from runs.views.constraints import wrong
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    number,
    person_of,
    shell,
    show,
    submission_of,
    typed,
)
from runs.views.refusals import Errors, damaged, keep_refused

FIELDS = ("place", "name", "text", "predicate", "reason")
Place = Tenant | Agent | Run


@console_page
@guarded(On.PERSON, acts=(Right.MANAGE_POLICIES,))
@require_http_methods(["GET", "HEAD", "POST"])
def constraints(request: HttpRequest) -> HttpResponse:
    """What is held for the agents and organisations of this person; POST holds another one."""
    if request.method != "POST":
        return _list(request, {})
    place, submission = _sent_place(request), submission_of(request)
    errors: Errors = [] if place else [{"field": "place", "message": _("Choose for what it is held.")}]
    if submission is None:
        errors = damaged()
    if place is None or submission is None:
        return _not_added(request, place, errors, "form", 422)
    try:
        made = actions.add_constraint(
            person=person_of(request), place=place, submission=submission,
            **{name: typed(request, name) for name in ("name", "text", "predicate", "reason")},
        )  # fmt: skip
    except actions.ConstraintRefused as error:
        return _not_added(request, place, [wrong(error)], "form", 422)
    except Refused as error:
        return _not_added(request, place, [{"field": "", "message": str(error)}], "submission_reused", 400)
    except actions.ConstraintNotManaged as error:
        return _forbidden(request, place, error, ADD)
    return HttpResponseRedirect(address(made.ref, done=1))


def address(ref: str, **query: int) -> str:
    """The page of one constraint."""
    url = reverse("constraint", args=[ref.removeprefix(held.PREFIX)])
    return f"{url}?done=1" if query else url


def _sent_place(request: HttpRequest) -> Place | None:
    """What the form names, of all that this person knows of: whether they may hold anything there is asked later."""
    person = person_of(request)
    known: list[Tenant | Agent] = [
        *person.tenants(),
        *agents_for(person, Right.VIEW_RUNS).select_related("tenant"),
    ]
    places = {_value(place): place for place in known} | _places(person)
    return places.get(request.POST.get("place", ""))


def _not_added(
    request: HttpRequest, place: Place | None, errors: Errors, refusal: str, status: int
) -> HttpResponse:
    """The form as it was typed, and the attempt, in the organisation that it names or else one's own."""
    if place and (denial := why_not(person_of(request), Right.MANAGE_POLICIES, place)):
        return _forbidden(request, place, actions.ConstraintNotManaged(denial), ADD)
    mine = person_of(request).tenants().first()
    tenant_id = _tenant_id(place) if place else mine.pk if mine else None
    _keep(request, tenant_id, ADD, named_place(place) if place else request.path, refusal)
    return _list(request, _again(request, errors), status=status)


def _tenant_id(place: Place) -> UUID:
    return place.pk if isinstance(place, Tenant) else place.tenant_id


def _again(request: HttpRequest, errors: Errors) -> Context:
    return {"values": {name: request.POST.get(name, "") for name in FIELDS}, "errors": errors}


def _readable(person: User) -> QuerySet[Statement]:
    """The latest version of each that this person may read."""
    return held.latest_of(statements_for(person))


def _places(person: User) -> dict[str, Place]:
    """Where this person may hold another one: `tenant-<id>` or `agent-<id>`."""
    tenants = tenants_with(person, Right.MANAGE_POLICIES).order_by("name")
    agents = agents_for(person, Right.MANAGE_POLICIES).select_related("tenant")
    places: list[Tenant | Agent] = [*tenants, *agents]
    return {_value(place): place for place in places}


def _value(place: Tenant | Agent) -> str:
    return f"{'tenant' if isinstance(place, Tenant) else 'agent'}-{place.pk}"


def named_place(place: Place) -> str:
    """For what a constraint is held, as pages say it."""
    match place:
        case Tenant():
            return _("all agents of %(name)s") % {"name": place.name}
        case Agent():
            return _("%(agent)s of %(name)s") % {"agent": place.name, "name": place.tenant.name}
        case _:
            return place.pk


def _list(request: HttpRequest, more: Context, *, status: int = 200) -> HttpResponse:
    person = person_of(request)
    context = {
        "constraints": _rows(sorted(_readable(person), key=lambda row: -row.pk)),
        "places": [{"value": key, "label": named_place(place)} for key, place in _places(person).items()],
        "names": [{"name": name, "text": text} for name, text in NAMES.items()],
        "submission": new_submission(), "values": {}, "errors": [],
    }  # fmt: skip
    return show(request, "console/constraints.html", {**shell(request), **context, **more}, status=status)


def _rows(rows: Sequence[Statement]) -> list[Context]:
    """What a page says of each; the first version of one is nothing that runs had to be told of."""
    progress = constrained.progress([row for row in rows if row.version > 1])
    return [_row(row, progress.get(row.pk)) for row in rows]


def _row(row: Statement, progress: constrained.Progress | None) -> Context:
    return {
        "name": row.name, "text": row.text, "predicate": row.predicate, "version": row.version, "at": row.at,
        "by": row.by.shown_name, "reason": row.reason, "withdrawn": row.withdrawn, "url": address(row.ref),
        "for": named_place(place_of(row)), "kind": str(words.SOURCES.get(row.kind, row.kind)),
        "progress": _told(progress) if progress else "",
    }  # fmt: skip


def _told(progress: constrained.Progress) -> str:
    facts = {"told": progress.told, "runs": progress.runs}
    return _("%(told)d of %(runs)d runs were told of it.") % facts


@console_page
@guarded(On.PERSON, acts=(Right.REVOKE_CONSTRAINTS,))
@require_http_methods(["GET", "HEAD", "POST"])
def constraint(request: HttpRequest, ref: str) -> HttpResponse:
    """One constraint with its history and what rests on it; POST states it otherwise or ends it."""
    latest = get_object_or_404(_readable(person_of(request)), ref=held.PREFIX + ref)
    if request.method != "POST":
        return _page(request, latest, {})
    step, submission, reason = request.POST.get("step", ""), submission_of(request), typed(request, "reason")
    acts: dict[str, tuple[str, Callable[[UUID], actions.Stated]]] = {
        "amend": (AMEND, lambda id_: actions.amend_constraint(
            person=person_of(request), latest=latest, text=typed(request, "text"),
            predicate=typed(request, "predicate"), reason=reason, seen=request.POST.get("seen", ""), submission=id_,
        )),
        "withdraw": (WITHDRAW, lambda id_: actions.withdraw_constraint(
            person=person_of(request), latest=latest, reason=reason, seen=request.POST.get("seen", ""), submission=id_,
        )),
    }  # fmt: skip
    if step not in acts or submission is None:
        return _not_changed(request, latest, "constraint", damaged(), "form", 422)
    action, act = acts[step]
    try:
        act(submission)
    except actions.ConstraintRefused as error:
        return _not_changed(request, latest, action, [wrong(error)], "form", 422)
    except Refused as error:
        errors: Errors = [{"field": "", "message": str(error)}]
        return _not_changed(request, latest, action, errors, "submission_reused", 400)
    except actions.ConstraintNotManaged as error:
        return _forbidden(request, place_of(latest), error, action)
    except actions.ConstraintMoved as error:
        _keep(request, latest.tenant_id, action, latest.ref, "stale")
        more: Context = {"values": _typed(request), "conflict": _conflict(request, error)}
        return _page(request, error.latest, more, status=409)
    return HttpResponseRedirect(address(latest.ref, done=1))


def _typed(request: HttpRequest) -> dict[str, str]:
    return {name: request.POST.get(name, "") for name in ("text", "predicate", "reason")}


def _not_changed(
    request: HttpRequest, latest: Statement, action: str, errors: Errors, refusal: str, status: int
) -> HttpResponse:
    """The page with what was typed. Nothing was changed but that the attempt is kept."""
    if denial := why_not(person_of(request), Right.REVOKE_CONSTRAINTS, place_of(latest)):
        return _forbidden(request, place_of(latest), actions.ConstraintNotManaged(denial), action)
    _keep(request, latest.tenant_id, action, latest.ref, refusal)
    return _page(request, latest, {"values": _typed(request), "errors": errors}, status=status)


def _conflict(request: HttpRequest, error: actions.ConstraintMoved) -> Context:
    now = revoking.counts(error.impact)
    return {
        "title": _("Not recorded. It changed while you were reading."),
        "text": _("Nothing was changed and nothing was ended. Compare it with what is true now."),
        "compared": [
            {"saw": typed(request, "counted") or "–", "now": now},
            {"saw": typed(request, "said") or "–", "now": error.latest.text},
        ],
        "url": address(error.latest.ref), "seq": error.latest.version,
    }  # fmt: skip


def _page(request: HttpRequest, latest: Statement, more: Context, *, status: int = 200) -> HttpResponse:
    person, place = person_of(request), place_of(latest)
    impact = constrained.impact(tenant_id=latest.tenant_id, ref=latest.ref)
    page = number(request.GET.get("page")) or 1
    may = why_not(person, Right.REVOKE_CONSTRAINTS, place) is None
    context = {
        "constraint": _rows([latest])[0],
        "history": _history(latest),
        "rests": revoking.everywhere(latest, impact, person, page=page) if not latest.withdrawn else None,
        "seen": impact.digest,
        "may_change": may,
        "why_not": "" if may else who.why_not(
            person, Right.REVOKE_CONSTRAINTS, holders(Right.REVOKE_CONSTRAINTS, place)
        ),
        "list_url": reverse("constraints"),
        "done": request.GET.get("done") == "1",
        "submission": new_submission(), "submission_end": new_submission(), "errors": [],
        "values": {"text": latest.text, "predicate": latest.predicate},
    }  # fmt: skip
    return show(request, "console/constraint.html", {**shell(request), **context, **more}, status=status)


def _history(latest: Statement) -> list[Context]:
    """Every version, the newest first, each with what it changed."""
    rows = list(
        Statement.objects.filter(tenant_id=latest.tenant_id, ref=latest.ref)
        .select_related("by", "agent", "run", "tenant")
        .order_by("version")
    )
    found = []
    for before, row in zip([None, *rows], rows, strict=False):
        diff = word_diff(before.text, row.text) if before and not row.withdrawn else ()
        found.append({
            "version": row.version, "by": row.by.shown_name, "at": row.at, "reason": row.reason, "text": row.text,
            "withdrawn": row.withdrawn, "diff": diff, "predicate": row.predicate,
        })  # fmt: skip
    return found[::-1]


def _forbidden(
    request: HttpRequest, place: Place, error: actions.ConstraintNotManaged, action: str
) -> HttpResponse:
    """403, with who can."""
    _keep(request, _tenant_id(place), action, named_place(place), "not_allowed")
    people = [p for p in holders(error.denial.right, place) if p != person_of(request)]
    context = {
        "incident_id": getattr(request, "request_id", ""), "rule": error.denial.sentence,
        "detail": _("You cannot change what is held here."), "who_can": who.who_can(people),
        "back_url": reverse("constraints"), "back_label": _("Back to the constraints"),
    }  # fmt: skip
    return show(request, "errors/403.html", {**shell(request), **context}, status=403)


def _keep(request: HttpRequest, tenant_id: UUID | None, action: str, subject: str, refusal: str) -> None:
    keep_refused(
        request,
        tenant_id=tenant_id,
        action=action,
        subject=subject,
        refusal=refusal,
        reason=typed(request, "reason"),
    )
