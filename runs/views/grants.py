"""Grants on pages: what one lent and looks after, and the end of one with what it stops."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts.guards import On, guarded
from accounts.rights import Denial, Right, holders
from approvals.models import LEAST_REASON
from runs import actions, grants
from runs.machine.transitions import Refused
from runs.models import Grant
from runs.pages import grants as shown
from runs.pages.who import who_can
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    person_of,
    query_value,
    shell,
    show,
    submission_of,
    typed,
)
from runs.views.refusals import Errors, damaged, keep_refused, longer
from runs.views.results import kept_result

ACTION = "end_grant"


@console_page
@guarded(On.PERSON)
@require_safe
def listed(request: HttpRequest) -> HttpResponse:
    """What one lent, and what others lent to the agents that one operates."""
    frame = shell(request)
    context = {**frame, **shown.listed(person_of(request), frame["now"]), "result": _result(request)}
    return show(request, "runs/grants.html", context)


@console_page
@guarded(On.PERSON, acts=(Right.OPERATE_RUNS,))
@require_http_methods(["GET", "HEAD", "POST"])
def end(request: HttpRequest, grant: UUID) -> HttpResponse:
    """GET shows what the end of the grant would stop; POST ends it, where that is still so."""
    try:
        return _post(request, grant) if request.method == "POST" else _page(request, grant, {})
    except grants.GrantNotFound as error:
        raise Http404 from error


def _page(request: HttpRequest, grant: UUID, more: Context, *, status: int = 200) -> HttpResponse:
    person, frame = person_of(request), shell(request)
    row, denial = _found(request, grant)
    context = shown.ending(row, grants.impact_of(row), person, frame["now"], denial)
    context["who_can"] = who_can(holders(Right.OPERATE_RUNS, row.agent)) if denial else ""
    empty: Context = {"values": {}, "errors": [], "submission": new_submission()}
    return show(request, "runs/end_grant.html", {**frame, **context, **empty, **more}, status=status)


def _found(request: HttpRequest, grant: UUID) -> tuple[Grant, Denial | None]:
    """The grant, and what keeps this person from ending it. Raises grants.GrantNotFound."""
    try:
        return grants.endable(person_of(request), grant), None
    except grants.MayNotEnd as error:
        return error.grant, error.denial


def _post(request: HttpRequest, grant: UUID) -> HttpResponse:
    submission, why = submission_of(request), typed(request, "reason")
    values = {"reason": why}
    if _found(request, grant)[1] is None and (errors := _errors(submission, why)):
        return _refused(request, grant, "form", {"values": values, "errors": errors}, 422)
    try:
        actions.end_grant(
            person=person_of(request), grant=grant, why=why, impact=request.POST.get("impact", ""),
            submission=submission or UUID(int=0),
        )  # fmt: skip
    except grants.MayNotEnd:
        return _refused(request, grant, "not_allowed", {}, 403)
    except (actions.ImpactChanged, actions.GrantOver, Refused):
        return _refused(request, grant, "stale", {"values": values, "changed": True}, 409)
    return HttpResponseRedirect(f"{reverse('grants')}?done={submission}")


def _errors(submission: UUID | None, why: str) -> Errors:
    if submission is None:
        return damaged()
    if len(why) < LEAST_REASON:
        message = _("Enter a reason of at least 10 characters. The next operator will read it.")
        return [{"field": "reason", "message": message}]
    return longer(why, "reason")


def _refused(request: HttpRequest, grant: UUID, code: str, more: Context, status: int) -> HttpResponse:
    """Keep the attempt, and show the page as it is now."""
    row, _denial = _found(request, grant)
    keep_refused(
        request, tenant_id=row.tenant_id, action=ACTION, subject=f"grant {grant}",
        seen=request.POST.get("impact", "")[:100], refusal=code, reason=typed(request, "reason"),
    )  # fmt: skip
    return _page(request, grant, more, status=status)


def _result(request: HttpRequest) -> Context | None:
    """What this person's form ended."""
    if kept_result(query_value(request, "done"), person_of(request), ACTION) is None:
        return None
    return {
        "text": _("The grant was ended."),
        "detail": _("Nothing is sent on it any more. The runs that acted on it ask for another."),
    }
