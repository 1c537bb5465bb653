"""Pages that only read: the run, plan versions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts.guards import On, guard_of, guarded
from accounts.models import User
from accounts.rights import Right
from runs import actions, seeing
from runs.access import RunNotFound, run_for, visible_runs
from runs.clock import database_now
from runs.ledger import LogUnreadable, log
from runs.machine import events as e
from runs.machine import expiry
from runs.machine import state as s
from runs.models import Run
from runs.outdated import outdated
from runs.pages import lineage, notes, plan_page, plans, relatives, run_page, who, words, working
from runs.queries import holders_of
from runs.views.frame import Context, console_page, new_submission, number, person_of, shell, show
from runs.views.results import result_of
from runs.working import workers_of


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A run as one page reads it: the log once, its state, who may do what, and the time."""

    run: Run
    log: tuple[e.Recorded, ...]
    state: s.RunState
    reader: run_page.Reader


def opened(person: User, run_id: str) -> Opened:
    """Read the run for a page. Raises RunNotFound, LogUnreadable."""
    return opened_run(person, run_for(person, run_id))


def opened_run(person: User, run: Run) -> Opened:
    """As `opened`, for a run that was loaded for this person."""
    recorded = tuple(log(run.pk))
    holders = holders_of(who.ACTING, run)
    reader = run_page.Reader(person=person, holders=holders, now=database_now())
    shown = seeing.shown(run, recorded, sees=Right.SEE_VALUES in reader.mine)
    state = expiry.as_of(shown.state, reader.now)
    reader = replace(reader, hidden=shown.hidden, whole=shown.whole)
    return Opened(run=run, log=shown.log, state=state, reader=reader)


def predecessor(person: User, run: Run) -> Context | None:
    """The run that this one succeeds, as far as this person may see it; None where there is none."""
    if run.predecessor_id is None:
        return None
    try:
        old = run_for(person, run.predecessor_id)
    except RunNotFound:
        return None
    try:
        recorded = tuple(log(old.pk))
        seen = seeing.shown(old, recorded, sees=seeing.sees_values(person, old)).log
        return lineage.before(old.pk, seen)
    except LogUnreadable:
        return lineage.before(old.pk, ())


def known(person: User, state: s.RunState) -> dict[str, Run]:
    """The runs that this one is related to and that the person may see, by id: one query, none where there are none."""
    ids = relatives.related(state)
    return {run.pk: run for run in visible_runs(person).filter(pk__in=ids)} if ids else {}


def notices_of(run_id: str, seq: int) -> str:
    """Where a page about the run asks for news since that version."""
    return f"{reverse('run-notices', args=[run_id])}?seq={seq}"


def show_about(
    request: HttpRequest, page: Opened, template: str, context: Context, *, status: int = 200
) -> HttpResponse:
    """Render a page about an opened run: it asks for news since the version that it was read at."""
    frame = shell(request, now=page.reader.now, notices=notices_of(page.run.pk, page.state.seq))
    frame |= claimed_by_another(request, page.run, page.reader.now)
    return show(request, template, {**frame, **context}, status=status)


def claimed_by_another(request: HttpRequest, run: Run, now: datetime) -> Context:
    """For a page with a form about the run: who else claims it. Opening such a page renews one's own claim."""
    found, person = request.resolver_match, person_of(request)
    guard = guard_of(found.func) if found else None
    if guard is None or not guard.acts:
        return {}
    claim = workers_of(run.pk, now).claim
    if claim is None:
        return {}
    if claim.person_id != person.pk:
        return working.another(claim)
    if request.method == "GET":
        actions.renew_seen(claim, now)
    return {}


@console_page
@guarded(On.RUN)
@require_safe
def run(request: HttpRequest, run_id: str) -> HttpResponse:
    """The run page. `?older=` begins the timeline below that event, `?saw=` marks what is newer."""
    person = person_of(request)
    found = run_for(person, run_id)
    context: Context
    try:
        page = opened_run(person, found)
    except LogUnreadable as error:
        context = run_page.unreadable(found, str(error)) | _beside(found, person, database_now(), None)
        context["result"] = result_of(request, run_id, person)
        return show(request, "runs/run.html", {**shell(request), **context})
    older, saw = number(request.GET.get("older")), number(request.GET.get("saw"))
    context = run_page.context(
        found, page.log, page.state, page.reader, older=older, saw=saw, known=known(person, page.state),
        outdated=_outdated(found),
    )  # fmt: skip
    context |= {"result": result_of(request, run_id, person), "predecessor": predecessor(person, found)}
    context |= {"check_submission": new_submission(), "read_submission": new_submission()}
    context |= _beside(found, person, page.reader.now, page.reader)
    return show_about(request, page, "runs/run.html", context)


def _beside(run: Run, person: User, now: datetime, reader: run_page.Reader | None) -> Context:
    """Who works on the run, and the newest notes on it. `reader` is None where the log cannot be read."""
    told = reader.told if reader else seeing.texts(person, run)
    return {
        **working.on_run(workers_of(run.pk, now), run, person, reader),
        **notes.newest(run, told),
        "claim_submission": new_submission(),
    }


def _outdated(run: Run) -> str:
    """That the policy changed since people were asked about the run's plan; empty where it did not."""
    found = outdated([run]).get(run.pk)
    return words.policy_changed(found.was, found.now) if found else ""


@console_page
@guarded(On.RUN)
@require_safe
def plan(request: HttpRequest, run_id: str, version: int) -> HttpResponse:
    """One plan version, compared with `?base=` or with the last one that was approved."""
    page = opened(person_of(request), run_id)
    found = plans.version_of(page.state, version)
    if found is None:
        raise Http404
    asked = number(request.GET.get("base"))
    base = plans.version_of(page.state, asked) if asked else plans.base_of(page.state, found)
    context = plan_page.context(page.run, page.state, found, base, page.reader, page.log)
    return show_about(request, page, "runs/plan.html", context)
