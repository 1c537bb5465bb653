"""Revising the goal, in two steps: what would change and what that would do, then the commit of just that."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.rights import Right
from approvals.models import LEAST_REASON
from runs import actions
from runs.access import run_for
from runs.limits import LONGEST_GOAL, LONGEST_TEXT
from runs.machine import decide
from runs.pages import revising
from runs.pages.word_diff import word_diff
from runs.views.again import refused_with, typed_again
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    number,
    person_of,
    typed,
)
from runs.views.pages import Opened, opened, show_about
from runs.views.refusals import Errors, FormWrong, Outdated, Refusal, Tried, attempt, damaged, form_id
from runs.views.results import to_run

#: What the two buttons of the second step and the one of the first send.
COMPARE, COMMIT, EDIT = "compare", "commit", "edit"


@console_page
@guarded(On.RUN, acts=(Right.REVISE_GOALS,))
@require_http_methods(["GET", "HEAD", "POST"])
def revise(request: HttpRequest, run_id: str) -> HttpResponse:
    """GET shows the goal and what another would do; a POST shows the difference, another one commits it."""
    page = opened(person_of(request), run_id)
    if request.method != "POST":
        return _page(request, page, {})
    tried = Tried(
        run=page.run, action=actions.REVISE, subject=run_id, seen=f"goal v{request.POST.get('goal_version', '')}",
        reason=request.POST.get("reason", ""),
    )  # fmt: skip
    return attempt(
        request,
        tried,
        lambda: _act(request, page),
        lambda error, status: _again(request, run_id, error, status),
    )


def _page(request: HttpRequest, page: Opened, more: Context, *, status: int = 200) -> HttpResponse:
    context = {
        **revising.context(page.run, page.state, page.reader),
        "submission": new_submission(),
        "limits": {"text": LONGEST_GOAL, "reason": LONGEST_TEXT},
    }
    return show_about(request, page, "runs/revise_goal.html", {**context, **more}, status=status)


def _act(request: HttpRequest, page: Opened) -> HttpResponse:
    run_for(person_of(request), page.run.pk, Right.REVISE_GOALS)
    step, submission = request.POST.get("step", ""), form_id(request)
    if step not in (COMPARE, COMMIT, EDIT):
        raise FormWrong(damaged())
    text, reason = _lines(request, "text"), _lines(request, "reason")
    if step == EDIT:
        return _page(request, page, {"values": {"text": text, "reason": reason}})
    if step == COMPARE:
        _checked(request, page, text, reason)
        return _page(
            request, page, {"values": {"text": text, "reason": reason}, "review": _review(page, text)}
        )
    _commit(request, page, text, reason, submission)
    return to_run(page.run.pk, submission)


def _lines(request: HttpRequest, field: str) -> str:
    """What was typed, with the ends of lines as they were before the form was sent."""
    return typed(request, field).replace("\r\n", "\n").replace("\r", "\n")


def _review(page: Opened, text: str) -> Context:
    return {"diff": word_diff(page.state.goal.text, text)}


def _checked(request: HttpRequest, page: Opened, text: str, reason: str) -> None:
    """Refuse in the first step what the second would refuse."""
    try:
        actions.refuse_words(text, reason)
        decide.revised(page.state, text=text, reason=reason, expected=_expected(request))
    except _REFUSED as error:
        raise _told(request, page, error) from error


def _commit(request: HttpRequest, page: Opened, text: str, reason: str, submission: UUID) -> None:
    try:
        actions.revise_goal(
            person=person_of(request), run_id=page.run.pk, text=text, reason=reason, expected=_expected(request),
            impact=request.POST.get("impact", ""), submission=submission,
        )  # fmt: skip
    except _REFUSED as error:
        raise _told(request, opened(person_of(request), page.run.pk), error) from error


def _expected(request: HttpRequest) -> int:
    return number(request.POST.get("goal_version")) or 0


_REFUSED = (actions.GoalRefused, actions.ImpactMoved, decide.GoalMoved, decide.GoalUnchanged)


def _told(request: HttpRequest, page: Opened, error: Exception) -> FormWrong | Outdated:
    """The refusal of an action as one of a form."""
    match error:
        case decide.GoalMoved():
            return _moved(page, error)
        case actions.ImpactMoved():
            saw, now = revising.moved_impact(page.state, page.log, number(request.POST.get("run_seq")))
            return Outdated(saw=saw, now=now)
        case actions.GoalRefused():
            return FormWrong(_wrong(error))
        case _:
            message = _("This is the committed goal, word for word: there is nothing to revise.")
            return FormWrong([{"field": "text", "message": message}])


def _moved(page: Opened, error: decide.GoalMoved) -> Outdated:
    seen = next((g.text for g in page.state.goals if g.version == error.expected), "–")
    said = _("Goal v%(version)d: “%(text)s”")
    return Outdated(
        saw=said % {"version": error.expected, "text": seen},
        now=said % {"version": error.committed.version, "text": error.committed.text},
    )


def _wrong(error: actions.GoalRefused) -> Errors:
    match error.problem:
        case "empty":
            message = _("Enter the new goal.")
        case "short":
            message = _(
                "Enter a reason of at least %(least)d characters. The agent, the next approver and the next operator "
                "read it."
            ) % {"least": LEAST_REASON}
        case _:
            limit = LONGEST_GOAL if error.field == "text" else LONGEST_TEXT
            message = _("Use at most %(limit)d characters.") % {"limit": limit}
    return [{"field": error.field, "message": message}]


def _again(request: HttpRequest, run_id: str, error: Refusal, status: int) -> HttpResponse:
    """The page as it is now, with what was typed."""
    page = opened(person_of(request), run_id)
    values = typed_again(request, "text", "reason")
    text = _("Your goal was not recorded, and nothing was ended by it. Compare it with what is true now.")
    more = refused_with(request, page, error, status, values, text=text, field="field-text")
    return _page(request, page, more, status=status)
