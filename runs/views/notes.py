"""Notes on a run: all of them, and writing one. Also where its log cannot be read: then they matter most."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.rights import Right
from runs import actions, seeing
from runs.access import run_for
from runs.clock import database_now
from runs.models import Run
from runs.pages import notes as pages
from runs.views.again import errors_of
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    number,
    person_of,
    shell,
    show,
    typed,
)
from runs.views.pages import claimed_by_another, notices_of
from runs.views.refusals import Errors, FormWrong, Tried, attempt, form_id, longer
from runs.views.results import result_of
from runs.views.working import bare_heading


@console_page
@guarded(On.RUN, acts=(Right.VIEW_RUNS,))
@require_http_methods(["GET", "HEAD", "POST"])
def notes(request: HttpRequest, run_id: str) -> HttpResponse:
    """GET shows the notes on the run, newest first; POST keeps another one."""
    run = run_for(person_of(request), run_id)
    if request.method != "POST":
        return _page(request, run, {"result": result_of(request, run_id, person_of(request))})
    return attempt(
        request,
        Tried(run=run, action=actions.NOTE, subject=run_id, seen="", reason=request.POST.get("text", "")),
        lambda: _note(request, run),
        lambda error, status: _page(
            request, run, {"errors": errors_of(error), "values": {"text": request.POST.get("text", "")}}, status
        ),
    )  # fmt: skip


def wrong(text: str) -> Errors:
    """What keeps a text from being kept as a note."""
    if not text:
        return [{"field": "text", "message": _("Enter what the next person should know.")}]
    return longer(text, "text")


def _note(request: HttpRequest, run: Run) -> HttpResponse:
    submission, text = form_id(request), typed(request, "text")
    if errors := wrong(text):
        raise FormWrong(errors)
    actions.note_run(person=person_of(request), run_id=run.pk, text=text, submission=submission)
    return HttpResponseRedirect(f"{reverse('run-notes', args=[run.pk])}?done={submission}")


def _page(request: HttpRequest, run: Run, more: Context, status: int = 200) -> HttpResponse:
    now = database_now()
    context: Context = {
        "run": bare_heading(request, run),
        **pages.page(run, seeing.texts(person_of(request), run), number(request.GET.get("page")) or 1),
        "values": {}, "errors": [], "submission": new_submission(),
    }  # fmt: skip
    frame = shell(request, now=now, notices=notices_of(run.pk, run.seq))
    frame |= claimed_by_another(request, run, now)
    return show(request, "runs/notes.html", {**frame, **context, **more}, status=status)
