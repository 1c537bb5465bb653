"""An approver takes their own approval back."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.rights import Right
from approvals.outcomes import DecisionRefusedError
from runs import actions
from runs.machine import state as s
from runs.pages import plans, taking_back
from runs.views.again import conflicting, errors_of, typed_again
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    person_of,
    typed,
)
from runs.views.pages import Opened, opened, show_about
from runs.views.refusals import FormWrong, Refusal, Tried, attempt, form_id, longer
from runs.views.results import to_run


@console_page
@guarded(On.RUN, acts=(Right.VIEW_RUNS,))  # one's own approval: there is nothing of others to take
@require_http_methods(["GET", "HEAD", "POST"])
def take_back(request: HttpRequest, run_id: str, version: int) -> HttpResponse:
    """GET shows what would not be sent any more; POST takes the approval back."""
    page = opened(person_of(request), run_id)
    plan = _plan(page, version)
    if request.method != "POST":
        return _page(request, page, plan, {})
    tried = Tried(
        run=page.run, action="take back", subject=actions.subject_of(run_id, version),
        seen=request.POST.get("digest", ""), reason=request.POST.get("reason", ""),
    )  # fmt: skip
    return attempt(
        request,
        tried,
        lambda: _take_back(request, page, plan),
        lambda error, status: _again(request, run_id, version, error, status),
    )


def _plan(page: Opened, version: int) -> s.PlanVersion:
    if (plan := plans.version_of(page.state, version)) is None:
        raise Http404
    return plan


def _page(
    request: HttpRequest, page: Opened, plan: s.PlanVersion, more: Context, *, status: int = 200
) -> HttpResponse:
    context = taking_back.context(page.run, page.state, plan, page.reader)
    context |= {"submission": new_submission(), **more}
    return show_about(request, page, "runs/take_back.html", context, status=status)


def _take_back(request: HttpRequest, page: Opened, plan: s.PlanVersion) -> HttpResponse:
    submission, reason = form_id(request), typed(request, "reason")
    if too_long := longer(reason, "reason"):
        raise FormWrong(too_long)
    actions.take_back_approval(
        person=person_of(request),
        run_id=page.run.pk,
        version=plan.version,
        reason=reason,
        submission=submission,
    )
    return to_run(page.run.pk, submission)


def _again(request: HttpRequest, run_id: str, version: int, error: Refusal, status: int) -> HttpResponse:
    """The page as it is now, with what was typed."""
    page = opened(person_of(request), run_id)
    plan, values = _plan(page, version), typed_again(request, "reason")
    if status == 409:
        text = _("Nothing was taken back. %(why)s") % {"why": _why(error)}
        kept = conflicting(request, page, error, values, text=text, field="field-reason")
        return _page(request, page, plan, kept, status=409)
    errors = (
        [{"field": "reason", "message": _why(error)}] if isinstance(error, DecisionRefusedError) else None
    )
    more = {"values": values, "errors": errors or errors_of(error)}
    return _page(request, page, plan, more, status=status)


def _why(error: Refusal) -> str:
    return error.sentence if isinstance(error, DecisionRefusedError) else ""
