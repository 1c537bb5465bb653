"""Withdrawing a constraint from the page of a run, and accepting for a run what its source states now."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.rights import Right
from approvals.models import LEAST_REASON
from runs import actions
from runs.access import NotPermitted, run_for
from runs.actions.constraints import ACCEPT, WITHDRAW, refuse_reason
from runs.limits import LONGEST_CONSTRAINT_NAME, LONGEST_TEXT
from runs.machine import decide
from runs.machine import state as s
from runs.machine.decide import AmendmentMoved
from runs.pages import accepting, revising, revoking
from runs.views.again import conflicting, errors_of, phrase_errors, refused_with, typed_again
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    number,
    person_of,
    typed,
)
from runs.views.pages import Opened, opened, show_about
from runs.views.refusals import Errors, FormWrong, Outdated, Refusal, Tried, attempt, form_id
from runs.views.results import to_run

FIELDS = ("scope", "reason", "phrase")


@console_page
@guarded(On.RUN, acts=(Right.REVOKE_CONSTRAINTS,))
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, run_id: str, constraint: int) -> HttpResponse:
    """GET shows what would end; POST withdraws the constraint, for this run or everywhere it applies."""
    page = opened(person_of(request), run_id)
    found = accepted(page, constraint)
    if request.method != "POST":
        return _revoke_page(request, page, found, {})
    tried = Tried(
        run=page.run, action=WITHDRAW, subject=f"{run_id}/{revoking.name_of(found)}",
        seen=request.POST.get("here", ""), reason=request.POST.get("reason", ""),
    )  # fmt: skip
    return attempt(
        request,
        tried,
        lambda: _revoke(request, page, found),
        lambda error, status: _revoke_again(request, run_id, constraint, error, status),
    )


def accepted(page: Opened, number_: int) -> s.Constraint:
    """The constraint that the run accepted under this number. Raises Http404."""
    found = next((c for c in page.state.constraints if c.number == number_), None)
    if found is None:
        raise Http404
    return found


def _revoke_page(
    request: HttpRequest, page: Opened, found: s.Constraint, more: Context, *, status: int = 200
) -> HttpResponse:
    context = revoking.context(
        page.run, page.state, found, page.reader, page=number(request.GET.get("page")) or 1
    )
    context |= {"submission": new_submission(), **more}
    return show_about(request, page, "runs/revoke.html", context, status=status)


def _revoke(request: HttpRequest, page: Opened, found: s.Constraint) -> HttpResponse:
    run_for(person_of(request), page.run.pk, Right.REVOKE_CONSTRAINTS)
    submission, reason, scope = form_id(request), typed(request, "reason"), request.POST.get("scope", "")
    shown = revoking.context(page.run, page.state, found, page.reader)
    errors: Errors = phrase_errors(request, shown["phrase"])
    if scope not in (revoking.HERE, revoking.EVERYWHERE):
        errors = [{"field": "scope", "message": _("Choose where the constraint ends.")}, *errors]
    try:
        refuse_reason(reason)
    except actions.ConstraintRefused as error:
        errors = [*errors, wrong(error)]
    if errors:
        raise FormWrong(errors)
    if scope == revoking.HERE:
        _here(request, page, found, reason, submission)
    else:
        _everywhere(request, page, found, reason, submission)
    return to_run(page.run.pk, submission)


def _here(request: HttpRequest, page: Opened, found: s.Constraint, reason: str, submission: UUID) -> None:
    try:
        actions.withdraw_here(
            person=person_of(request), run_id=page.run.pk, number=found.number, reason=reason,
            seen=request.POST.get("here", ""), submission=submission,
        )  # fmt: skip
    except actions.ImpactMoved as error:
        now = opened(person_of(request), page.run.pk)
        saw, is_now = revising.moved_impact(now.state, now.log, number(request.POST.get("run_seq")))
        raise Outdated(saw=saw, now=is_now) from error


def _everywhere(
    request: HttpRequest, page: Opened, found: s.Constraint, reason: str, submission: UUID
) -> None:
    """At its source, in one row; the runs are told afterwards, this one first of all."""
    person = person_of(request)
    statement = revoking.statement_of(page.run, found)
    if statement is None:
        raise FormWrong([{"field": "scope", "message": _("Its source is not held in this console.")}])
    try:
        actions.withdraw_constraint(
            person=person, latest=statement, reason=reason, seen=request.POST.get("everywhere", ""),
            submission=submission, about=page.run,
        )  # fmt: skip
    except actions.ConstraintNotManaged as error:
        raise NotPermitted(page.run, error.denial) from error
    except actions.ConstraintMoved as error:
        raise moved(request, error) from error


def moved(request: HttpRequest, error: actions.ConstraintMoved) -> Outdated:
    """What the person saw of the whole impact, and what it is now."""
    saw = typed(request, "counted")
    return Outdated(saw=saw or "–", now=revoking.counts(error.impact))


def wrong(error: actions.ConstraintRefused) -> dict[str, str]:
    """What cannot be recorded, at its field."""
    match error.field, error.problem:
        case "predicate", problem:
            message = problem
        case _field, "empty":
            message = _("Enter it: nothing can be empty here.")
        case _field, "short":
            message = _("Enter a reason of at least %(least)d characters.") % {"least": LEAST_REASON}
        case _field, "same":
            message = _("It says this already, word for word.")
        case "name", _problem:
            message = _("Use at most %(limit)d characters.") % {"limit": LONGEST_CONSTRAINT_NAME}
        case _:
            message = _("Use at most %(limit)d characters.") % {"limit": LONGEST_TEXT}
    return {"field": error.field, "message": message}


def _revoke_again(
    request: HttpRequest, run_id: str, constraint: int, error: Refusal, status: int
) -> HttpResponse:
    page = opened(person_of(request), run_id)
    found, values = accepted(page, constraint), typed_again(request, *FIELDS)
    if status == 409:
        text = _("The constraint was not withdrawn, and nothing was ended. Compare it with what is true now.")
        kept = typed_again(request, "reason")
        more = conflicting(request, page, error, kept, text=text, field="field-reason")
        return _revoke_page(request, page, found, more, status=409)
    return _revoke_page(request, page, found, {"values": values, "errors": errors_of(error)}, status=status)


@console_page
@guarded(On.RUN, acts=(Right.OPERATE_RUNS,))
@require_http_methods(["GET", "HEAD", "POST"])
def accept(request: HttpRequest, run_id: str, constraint: int) -> HttpResponse:
    """GET shows the old and the new text; POST accepts the new one for this run."""
    page = opened(person_of(request), run_id)
    found = accepted(page, constraint)
    if request.method != "POST":
        return _accept_page(request, page, found, {})
    tried = Tried(
        run=page.run, action=ACCEPT, subject=f"{run_id}/{revoking.name_of(found)}",
        seen=request.POST.get("term", ""), reason=request.POST.get("reason", ""),
    )  # fmt: skip
    return attempt(
        request,
        tried,
        lambda: _accept(request, page, found),
        lambda error, status: _accept_again(request, run_id, constraint, error, status),
    )


def _accept_page(
    request: HttpRequest, page: Opened, found: s.Constraint, more: Context, *, status: int = 200
) -> HttpResponse:
    context = accepting.context(page.run, page.state, found, page.reader)
    context |= {"submission": new_submission(), **more}
    return show_about(request, page, "runs/accept.html", context, status=status)


def _accept(request: HttpRequest, page: Opened, found: s.Constraint) -> HttpResponse:
    run_for(person_of(request), page.run.pk, Right.OPERATE_RUNS)
    submission = form_id(request)
    try:
        actions.accept_amendment(
            person=person_of(request), run_id=page.run.pk, number=found.number, reason=typed(request, "reason"),
            seen=request.POST.get("term", ""), submission=submission,
        )  # fmt: skip
    except actions.ConstraintRefused as error:
        raise FormWrong([wrong(error)]) from error
    except decide.AmendmentMoved as error:
        raise _amended_again(request, error) from error
    return to_run(page.run.pk, submission)


def _amended_again(request: HttpRequest, error: AmendmentMoved) -> Outdated:
    now = error.constraint.amended
    return Outdated(saw=typed(request, "said"), now=now.term.text if now else error.constraint.term.text)


def _accept_again(
    request: HttpRequest, run_id: str, constraint: int, error: Refusal, status: int
) -> HttpResponse:
    page = opened(person_of(request), run_id)
    found, values = accepted(page, constraint), typed_again(request, "reason")
    text = _("Nothing was accepted. Read what the constraint says now, and decide again.")
    more = refused_with(request, page, error, status, values, text=text, field="field-reason")
    return _accept_page(request, page, found, more, status=status)
