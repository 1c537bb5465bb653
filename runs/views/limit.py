"""Adding a constraint to a run, and confirming one that its agent inferred."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.rights import Right
from approvals.models import LEAST_REASON
from runs import actions
from runs.access import run_for
from runs.limits import LONGEST_CONSTRAINT_NAME, LONGEST_TEXT
from runs.machine import state as s
from runs.pages import limiting
from runs.views.again import refused_with, typed_again
from runs.views.constraints import accepted
from runs.views.frame import Context, console_page, new_submission, person_of, typed
from runs.views.pages import Opened, opened, show_about
from runs.views.refusals import Errors, FormWrong, Outdated, Refusal, Tried, attempt, form_id, longer
from runs.views.results import to_run

FIELDS = ("name", "text", "predicate", "reason")


@console_page
@guarded(On.RUN, acts=(Right.REVISE_GOALS,))
@require_http_methods(["GET", "HEAD", "POST"])
def add(request: HttpRequest, run_id: str) -> HttpResponse:
    """GET shows the form and what it would do; POST adds the constraint, where it does just that."""
    page = opened(person_of(request), run_id)
    if request.method != "POST":
        return _add_page(request, page, {})
    tried = Tried(
        run=page.run, action="limit run", subject=run_id, seen=f"version {request.POST.get('run_seq', '')}",
        reason=request.POST.get("reason", ""),
    )  # fmt: skip
    return attempt(
        request,
        tried,
        lambda: _add(request, page),
        lambda error, status: _add_again(request, run_id, error, status),
    )


def _add_page(request: HttpRequest, page: Opened, more: Context, *, status: int = 200) -> HttpResponse:
    context = {**limiting.adding(page.run, page.state, page.reader), "submission": new_submission()}
    return show_about(request, page, "runs/add_constraint.html", {**context, **more}, status=status)


def _add(request: HttpRequest, page: Opened) -> HttpResponse:
    run_for(person_of(request), page.run.pk, Right.REVISE_GOALS)
    submission = form_id(request)
    said = {field: typed(request, field).replace("\r\n", "\n") for field in FIELDS}
    try:
        actions.limit_run(
            person=person_of(request), run_id=page.run.pk, impact=request.POST.get("impact", ""),
            submission=submission, **said,
        )  # fmt: skip
    except actions.ConstraintRefused as error:
        raise FormWrong(_wrong(error)) from error
    except actions.LimitMoved as error:
        now = " ".join(limiting.impact_lines(opened(person_of(request), page.run.pk).state, error.now))
        raise Outdated(saw=_("What the page said it would do"), now=now) from error
    return to_run(page.run.pk, submission)


def _wrong(error: actions.ConstraintRefused) -> Errors:
    match error.problem:
        case "empty" | "short" if error.field == "reason":
            message = _("Enter a reason of at least %(least)d characters.") % {"least": LEAST_REASON}
        case "empty":
            message = _("Enter a name.") if error.field == "name" else _("Enter the constraint.")
        case "long":
            most = LONGEST_CONSTRAINT_NAME if error.field == "name" else LONGEST_TEXT
            message = _("Use at most %(limit)d characters.") % {"limit": most}
        case why:
            message = _("The predicate cannot be evaluated: %(why)s Write it anew, or leave it out.") % {
                "why": why
            }
    return [{"field": error.field, "message": message}]


def _add_again(request: HttpRequest, run_id: str, error: Refusal, status: int) -> HttpResponse:
    """The page as it is now, with what was typed."""
    page = opened(person_of(request), run_id)
    values = typed_again(request, *FIELDS)
    text = _("Your constraint was not added, and nothing was ended by it. Compare it with what is true now.")
    more = refused_with(request, page, error, status, values, text=text, field="field-text")
    return _add_page(request, page, more, status=status)


@console_page
@guarded(On.RUN, acts=(Right.OPERATE_RUNS,))
@require_http_methods(["GET", "HEAD", "POST"])
def confirm(request: HttpRequest, run_id: str, constraint: int) -> HttpResponse:
    """GET shows what the agent inferred, and from what; POST confirms it."""
    page = opened(person_of(request), run_id)
    found = accepted(page, constraint)
    if request.method != "POST":
        return _confirm_page(request, page, found, {})
    tried = Tried(
        run=page.run, action="confirm constraint", subject=f"{run_id} C-{constraint}",
        seen=f"version {request.POST.get('run_seq', '')}", reason=request.POST.get("note", ""),
    )  # fmt: skip
    return attempt(
        request,
        tried,
        lambda: _confirm(request, page, constraint),
        lambda error, status: _confirm_again(request, run_id, constraint, error, status),
    )


def _confirm_page(
    request: HttpRequest, page: Opened, found: s.Constraint, more: Context, *, status: int = 200
) -> HttpResponse:
    context = limiting.confirming(page.run, page.state, found, page.reader)
    context |= {"submission": new_submission(), **more}
    return show_about(request, page, "runs/confirm_constraint.html", context, status=status)


def _confirm(request: HttpRequest, page: Opened, number: int) -> HttpResponse:
    run_for(person_of(request), page.run.pk, Right.OPERATE_RUNS)
    submission, note = form_id(request), typed(request, "note")
    if too_long := longer(note, "note"):
        raise FormWrong(too_long)
    actions.confirm_constraint(
        person=person_of(request), run_id=page.run.pk, number=number, note=note, submission=submission
    )
    return to_run(page.run.pk, submission)


def _confirm_again(
    request: HttpRequest, run_id: str, number: int, error: Refusal, status: int
) -> HttpResponse:
    page = opened(person_of(request), run_id)
    found, values = accepted(page, number), typed_again(request, "note")
    text = _("Nothing was confirmed. Look at what is true now.")
    more = refused_with(request, page, error, status, values, text=text, field="field-note")
    return _confirm_page(request, page, found, more, status=status)
