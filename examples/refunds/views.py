"""The page that starts refund runs from a file of orders."""

from __future__ import annotations

from uuid import UUID

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe

from accounts.guards import On, guarded
from accounts.models import User
from accounts.rights import Denial, DenialKind, Right, holders
from console.own_pages import (
    Context,
    console_page,
    damaged,
    keep_refused,
    keep_result,
    kept_result,
    new_submission,
    person_of,
    shell,
    show,
    submission_of,
    uuid_of,
    who_can,
    why_address_at,
)
from examples.refunds import lending, progress
from examples.refunds.agent import REFUNDS
from examples.refunds.csvfile import COLUMNS, MAX_ROWS, CsvRefused
from examples.refunds.starting import Started, start_from_csv
from runs import configuration
from runs.access import agents_for
from runs.clock import database_now
from runs.models import Agent
from runs.sources import SourceUnknown

Errors = list[dict[str, str]]


@console_page
@guarded(On.PERSON, acts=(Right.START_RUNS,))
@require_http_methods(["GET", "HEAD", "POST"])
def start(request: HttpRequest) -> HttpResponse:
    """GET shows the form, POST starts a run for each order of the file, or none."""
    if request.method != "POST":
        return _page(request, {"result": _result(request)})
    agent = _agents(person_of(request)).get(request.POST.get("agent", ""))
    submission, file = submission_of(request), request.FILES.get("file")
    terms, errors = lending.terms_of(request)
    if agent is None:
        return _forbidden(request)
    if submission is None:
        errors = [*damaged(), *errors]
    if file is None:
        errors = [*_missing(), *errors]
    if file is None or submission is None or terms is None:
        return _page(request, {"errors": errors}, status=422)
    try:
        return _start(person_of(request), agent, file.read(), terms, submission)
    except SourceUnknown as error:
        return _page(request, {"errors": [{"field": "", "message": str(error)}]}, status=409)
    except CsvRefused as error:
        _keep(request, agent, error)
        return _page(request, _problems(error), status=422)


@console_page
@guarded(On.PERSON)
@require_safe
def progress_of(request: HttpRequest) -> HttpResponse:
    """How far the upload with this form id is, in words; 204 where there is nothing to say."""
    submission = uuid_of(request.GET.get("submission", ""))
    found = progress.of(str(person_of(request).pk), submission) if submission else None
    if found is None:
        return HttpResponse(status=204)
    done, total = found
    said = _("%(done)d of %(total)d rows. None counts before all are done.") % {"done": done, "total": total}
    return HttpResponse(said, content_type="text/plain; charset=utf-8", headers={"Cache-Control": "no-store"})


def _agents(person: User) -> dict[str, Agent]:
    """The refund agents of the person's tenants on which they may start runs, by the form's value."""
    found = agents_for(person, Right.START_RUNS).filter(name=REFUNDS.name).select_related("tenant")
    return {str(agent.pk): agent for agent in found}


def _start(person: User, agent: Agent, data: bytes, terms: lending.Terms, submission: UUID) -> HttpResponse:
    """Start, and keep what was started under the form's id: a second send leads to the same answer."""
    done = HttpResponseRedirect(f"{reverse('start')}?done={submission}")
    if kept_result(submission, person, "start"):
        return done
    configuration.ask_all(REFUNDS)  # outside the transaction of the starts
    try:
        with progress.watched(str(person.pk), submission) as told, transaction.atomic():
            started = start_from_csv(
                data=data, agent=agent, creator=person, principal=person, told=told,
                lend=lambda: terms.lend(agent=agent, principal=person, now=database_now()),
            )  # fmt: skip
            keep_result(submission, person, agent.tenant_id, "start", _counted(started))
    except IntegrityError:
        if not kept_result(submission, person, "start"):
            raise
    return done


def _counted(started: Started) -> dict[str, int | str]:
    counted: dict[str, int | str] = {"runs": len(started.runs), "already": started.already}
    if started.runs and started.grant:
        counted |= {"lent": lending.sentence(started.grant), "grant": str(started.grant.pk)}
    return counted | {"run": started.runs[0].pk} if len(started.runs) == 1 else counted


def _page(request: HttpRequest, more: Context, *, status: int = 200) -> HttpResponse:
    person = person_of(request)
    agents = [{"name": pk, "label": f"{a.title} · {a.tenant.name}"} for pk, a in _agents(person).items()]
    limit, frame = _("At most %(rows)d rows.") % {"rows": MAX_ROWS}, shell(request)
    context = {
        "agents": agents, "columns": COLUMNS, "limit_text": limit, "errors": [], "lending": lending.shown(frame["now"]),
        "values": {"agent": request.POST.get("agent", ""), **lending.values(request)},
        "submission": new_submission(), "progress_url": reverse("start-progress"),
        **({} if agents else _why_not(person)),
    }  # fmt: skip
    return show(request, "runs/start.html", {**frame, **context, **more}, status=status)


def _why_not(person: User) -> Context:
    """Why there is no form, and who could use it."""
    denial = Denial(kind=DenialKind.RIGHT_MISSING, person=person, right=Right.START_RUNS)
    agent = agents_for(person, Right.VIEW_RUNS).filter(name=REFUNDS.name).first()
    if agent is None:
        return {"why_not": denial.sentence, "who_can": ""}
    can = who_can(holders(Right.START_RUNS, agent))
    return {"why_not": denial.sentence, "who_can": can, "why_url": why_address_at(Right.START_RUNS, agent)}


def _forbidden(request: HttpRequest) -> HttpResponse:
    """403: there is no such agent on which this person may start runs. Kept where they may at least see it."""
    person = person_of(request)
    agent = agents_for(person, Right.VIEW_RUNS).filter(name=REFUNDS.name).first()
    keep_refused(
        request, tenant_id=agent.tenant_id if agent else None, action="start", subject=REFUNDS.name,
        refusal="not_allowed",
    )  # fmt: skip
    why = _why_not(person)
    context = {
        "incident_id": getattr(request, "request_id", ""),
        "detail": _("You cannot start runs. Nothing was started."),
        "rule": why["why_not"],
        "who_can": why["who_can"],
        "why_url": why.get("why_url", ""),
    }
    return show(request, "errors/403.html", {**shell(request), **context}, status=403)


def _missing() -> Errors:
    return [{"field": "file", "message": _("Choose a file. Nothing was started.")}]


def _problems(error: CsvRefused) -> Context:
    shown = [{"row": p.row, "column": p.column, "text": p.cause} for p in error.problems]
    return {"problems": shown, "problems_total": error.total}


def _keep(request: HttpRequest, agent: Agent, error: CsvRefused) -> None:
    keep_refused(
        request, tenant_id=agent.tenant_id, action="start", subject=agent.name, refusal="csv",
        detail={"problems": error.total, "first": str(error.problems[0])},
    )  # fmt: skip


def _result(request: HttpRequest) -> Context | None:
    """What the form of the address started."""
    counted = kept_result(request.GET.get("done", ""), person_of(request), "start")
    if counted is None:
        return None
    runs, already = int(counted["runs"]), int(counted["already"])
    text = ngettext("%(number)d run was started.", "%(number)d runs were started.", runs) % {"number": runs}
    detail = ngettext(
        "%(number)d order of the file had a run already; nothing was started twice.",
        "%(number)d orders of the file had a run already; nothing was started twice.",
        already,
    )
    said = [detail % {"number": already}] if already else []
    return {
        "text": text, "detail": " ".join([*said, *([str(counted["lent"])] if "lent" in counted else [])]),
        **_link(str(counted.get("run", ""))),
    }  # fmt: skip


def _link(run: str) -> Context:
    """Where to see what was started: the one run, else the list."""
    if run:
        return {"url": reverse("run", args=[run]), "url_label": _("Open the run")}
    return {"url": reverse("runs"), "url_label": _("See all runs")}
