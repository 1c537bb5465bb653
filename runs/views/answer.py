"""Giving a run an answer: recorded once for each form, whether or not the run waits for it yet."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.rights import Right
from runs import actions
from runs.access import run_for
from runs.answers import AnswerWrong, name_of, payload_of
from runs.pages import answering
from runs.views.again import refused_with, typed_again
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    person_of,
    typed,
)
from runs.views.pages import Opened, opened, show_about
from runs.views.refusals import Errors, FormWrong, Refusal, Tried, attempt, form_id
from runs.views.results import to_run


@console_page
@guarded(On.RUN, acts=(Right.OPERATE_RUNS,))
@require_http_methods(["GET", "HEAD", "POST"])
def answer(request: HttpRequest, run_id: str) -> HttpResponse:
    """GET shows what is waited for; POST records the answer."""
    page = opened(person_of(request), run_id)
    if request.method != "POST":
        return _page(request, page, {})
    seen = f"version {request.POST.get('run_seq', '')}"
    tried = Tried(
        run=page.run, action="signal", subject=run_id, seen=seen, reason=request.POST.get("payload", "")
    )
    return attempt(
        request, tried, lambda: _record(request, page), lambda error, status: _again(request, run_id, error, status)
    )  # fmt: skip


def _record(request: HttpRequest, page: Opened) -> HttpResponse:
    run_for(person_of(request), page.run.pk, Right.OPERATE_RUNS)
    submission = form_id(request)
    name, payload = _checked(request)
    actions.signal_run(
        person=person_of(request), run_id=page.run.pk, name=name, payload=payload, submission=submission
    )
    return to_run(page.run.pk, submission)


def _checked(request: HttpRequest) -> tuple[str, str]:
    """The name and the value that were typed. Raises FormWrong with all that is wrong with them."""
    found, errors = [], Errors()
    for field, read in (("name", name_of), ("payload", payload_of)):
        try:
            found.append(read(typed(request, field)))
        except AnswerWrong as error:
            errors.append({"field": error.field, "message": str(error)})
    if errors:
        raise FormWrong(errors)
    name, payload = found
    return name, payload


def _page(request: HttpRequest, page: Opened, more: Context, *, status: int = 200) -> HttpResponse:
    context = answering.answer(page.run, page.state, page.reader)
    context |= {"submission": new_submission(), **more}
    return show_about(request, page, "runs/answer.html", context, status=status)


def _again(request: HttpRequest, run_id: str, error: Refusal, status: int) -> HttpResponse:
    """The page as it is now, with what was typed."""
    page = opened(person_of(request), run_id)
    values = typed_again(request, "name", "payload")
    text = _("Your answer was not recorded.")
    more = refused_with(request, page, error, status, values, text=text, field="")
    return _page(request, page, more, status=status)
