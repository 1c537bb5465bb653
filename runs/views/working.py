"""Who works on a run: claiming it, releasing it, assigning it. Harmless: no event, and nobody is kept from anything."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.guards import On, guarded
from accounts.models import User
from accounts.rights import Right, may
from runs import actions, seeing
from runs.access import run_for
from runs.actions import ASSIGNING
from runs.clock import database_now
from runs.machine.decide import ConclusionRefused
from runs.models import Run
from runs.pages import who, words, working
from runs.queries import holders_of
from runs.views.again import errors_of, refused_bare
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    person_of,
    shell,
    show,
    uuid_of,
)
from runs.views.pages import claimed_by_another, notices_of
from runs.views.refusals import FormWrong, Refusal, Tried, attempt, form_id
from runs.views.results import to_run
from runs.working import workers_of

CLAIMS = ("claim", "take_over", "release")


@console_page
@guarded(On.RUN, acts=(Right.VIEW_RUNS,))
@require_POST
def claim(request: HttpRequest, run_id: str) -> HttpResponse:
    """Claim the run, take it over from whoever claims it, or release it; lead back to its page."""
    run = run_for(person_of(request), run_id)
    done = request.POST.get("do", "")
    return attempt(
        request,
        Tried(run=run, action="release" if done == "release" else "claim", subject=run_id, seen=""),
        lambda: _claim(request, run_id, done),
        lambda error, status: refused_bare(request, run_id, error, status),
    )


def _claim(request: HttpRequest, run_id: str, done: str) -> HttpResponse:
    person, submission = person_of(request), form_id(request)
    if done not in CLAIMS:
        raise FormWrong([{"field": "", "message": _("Choose whether you claim the run or release it.")}])
    if done == "release":
        actions.release_run(person=person, run_id=run_id, submission=submission)
    else:
        actions.claim_run(person=person, run_id=run_id, submission=submission, over=done == "take_over")
    return to_run(run_id, submission)


@console_page
@guarded(On.RUN, acts=ASSIGNING)
@require_http_methods(["GET", "HEAD", "POST"])
def assign(request: HttpRequest, run_id: str) -> HttpResponse:
    """GET shows to whom the run can be assigned; POST assigns it."""
    run = run_for(person_of(request), run_id)
    if request.method != "POST":
        return _page(request, run, {})
    return attempt(
        request,
        Tried(run=run, action="assign", subject=run_id, seen="", reason=request.POST.get("to", "")),
        lambda: _assign(request, run),
        lambda error, status: _again(request, run, error, status),
    )


def _assign(request: HttpRequest, run: Run) -> HttpResponse:
    person = person_of(request)
    if not any(may(person, right, run) for right in ASSIGNING):
        run_for(person, run.pk, ASSIGNING[0])
    submission: UUID = form_id(request)
    actions.assign_run(
        person=person, run_id=run.pk, to=chosen(request, actions.assignable(run)), submission=submission
    )
    return to_run(run.pk, submission)


def chosen(request: HttpRequest, people: list[User]) -> User | None:
    """Who was chosen among these; None: nobody is to work on it. Raises FormWrong."""
    sent = request.POST.get("to", "")
    if sent == working.NOBODY:
        return None
    found = next((person for person in people if person.pk == uuid_of(sent)), None)
    if found is None:
        raise FormWrong([{"field": "to", "message": _("Choose to whom it is assigned.")}])
    return found


def _again(request: HttpRequest, run: Run, error: Refusal, status: int) -> HttpResponse:
    errors = errors_of(error, lambda _condition: ("to", _cannot(error)))
    return _page(request, run, {"errors": errors, "values": {"to": request.POST.get("to", "")}}, status)


def _cannot(error: Refusal) -> str:
    assert isinstance(error, ConclusionRefused)
    return working.cannot(error)


def _page(request: HttpRequest, run: Run, more: Context, status: int = 200) -> HttpResponse:
    person, now = person_of(request), database_now()
    holders = holders_of(ASSIGNING, run)
    allowed = bool(who.rights_of(person, holders))
    found = workers_of(run.pk, now).assignment
    why = "" if allowed else who.why_not(person, ASSIGNING[0], actions.assignable(run))
    context: Context = {
        "run": bare_heading(request, run), "choices": working.choices(actions.assignable(run)),
        "assigned": found.person.shown_name if found else "", "may_assign": allowed, "why_not": why,
        "values": {"to": str(found.person_id) if found else ""}, "errors": [], "submission": new_submission(),
    }  # fmt: skip
    frame = shell(request, now=now, notices=notices_of(run.pk, run.seq))
    frame |= claimed_by_another(request, run, now)
    return show(request, "runs/assign.html", {**frame, **context, **more}, status=status)


def bare_heading(request: HttpRequest, run: Run) -> Context:
    """The `run` of a page that does not look into the log, so that it is there also where nobody can read that."""
    told = seeing.texts(person_of(request), run)
    return {
        "id": run.pk,
        "title": told(run.goal),
        "state": words.shown_state(run.state, run.reasons),
        "seq": run.seq,
        "url": reverse("run", args=[run.pk]),
    }
