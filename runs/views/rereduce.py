"""Re-reduction: what differs between a run's rows and its log, and making the rows anew."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.rights import Right
from runs import actions
from runs.access import run_for
from runs.pages import words
from runs.pages.run_page import heading
from runs.pages.stopping import may
from runs.rereduction import differences
from runs.views.again import errors_of
from runs.views.frame import Context, console_page, new_submission, person_of
from runs.views.pages import Opened, opened, show_about
from runs.views.refusals import Refusal, Tried, attempt, form_id
from runs.views.results import result_of


@console_page
@guarded(On.RUN, acts=(Right.REREDUCE_RUNS,))
@require_http_methods(["GET", "HEAD", "POST"])
def rereduce(request: HttpRequest, run_id: str) -> HttpResponse:
    """GET compares and changes nothing; POST makes the rows anew from the events. Nothing outside is called."""
    page = opened(person_of(request), run_id)
    if request.method != "POST":
        return _page(request, page, {"result": result_of(request, run_id, person_of(request))})
    tried = Tried(run=page.run, action="rereduce", subject=run_id, seen=f"version {page.state.seq}")
    return attempt(
        request, tried, lambda: _rereduce(request, page), lambda error, status: _again(request, page, error, status)
    )  # fmt: skip


def _rereduce(request: HttpRequest, page: Opened) -> HttpResponse:
    person = person_of(request)
    run_for(person, page.run.pk, Right.REREDUCE_RUNS)
    submission = form_id(request)
    actions.rereduce_run(person=person, run_id=page.run.pk, submission=submission)
    return HttpResponseRedirect(f"{reverse('run-rereduce', args=[page.run.pk])}?done={submission}")


def _page(request: HttpRequest, page: Opened, more: Context, *, status: int = 200) -> HttpResponse:
    context: Context = {
        "run": heading(page.run, page.state),
        "differences": [words.ended(page.reader.told(line)) for line in differences(page.run.pk)],
        "submission": new_submission(),
        **may("may_rereduce", Right.REREDUCE_RUNS, page.reader),
    }
    return show_about(request, page, "runs/rereduce.html", {**context, **more}, status=status)


def _again(request: HttpRequest, page: Opened, error: Refusal, status: int) -> HttpResponse:
    return _page(request, page, {"errors": errors_of(error)}, status=status)
