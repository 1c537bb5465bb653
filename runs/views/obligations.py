"""What a run owes: writing it down, stating that it is done, handing it on. Also on a run that is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.models import User
from accounts.rights import Right
from runs import actions
from runs.access import run_for
from runs.machine import decide
from runs.machine import state as s
from runs.pages import obligations
from runs.views.again import refused_with, typed_again
from runs.views.attest import how_errors, reference_too_long
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    person_of,
    typed,
    uuid_of,
)
from runs.views.pages import Opened, opened, show_about
from runs.views.refusals import Errors, FormWrong, Outdated, Refusal, Tried, attempt, form_id, longer
from runs.views.results import to_run

LONGEST_TO = 200  # characters
form_page = require_http_methods(["GET", "HEAD", "POST"])


@dataclass(frozen=True, kw_only=True)
class Form:
    """One of the pages here: its template and fields, the right it takes, and what it does once it is sent."""

    template: str
    action: str
    right: Right
    fields: tuple[str, ...]
    context: Callable[[Opened, int], Context]
    act: Callable[[HttpRequest, Opened, int, UUID], None]


@console_page
@guarded(On.RUN, acts=(Right.OPERATE_RUNS,))
@form_page
def add(request: HttpRequest, run_id: str) -> HttpResponse:
    """Write down what the run owes, to whom, until when, and who keeps it."""
    return _serve(request, run_id, 0, ADD)


@console_page
@guarded(On.RUN, acts=(Right.ATTEST_EFFECTS,))
@form_page
def attest(request: HttpRequest, run_id: str, obligation: int) -> HttpResponse:
    """State that an obligation is done."""
    return _serve(request, run_id, obligation, ATTEST)


@console_page
@guarded(On.RUN, acts=(Right.OPERATE_RUNS,))
@form_page
def hand_on(request: HttpRequest, run_id: str, obligation: int) -> HttpResponse:
    """Let another person keep an obligation."""
    return _serve(request, run_id, obligation, HAND_ON)


def _serve(request: HttpRequest, run_id: str, number: int, form: Form) -> HttpResponse:
    page = opened(person_of(request), run_id)
    if request.method != "POST":
        return _page(request, page, number, form, {})
    subject = f"{run_id} B-{number}" if number else run_id
    tried = Tried(
        run=page.run, action=form.action, subject=subject, seen=f"version {request.POST.get('run_seq', '')}",
        reason=request.POST.get(form.fields[0], ""),
    )  # fmt: skip
    return attempt(
        request,
        tried,
        lambda: _act(request, page, number, form),
        lambda error, status: _again(request, run_id, number, form, error, status),
    )


def _act(request: HttpRequest, page: Opened, number: int, form: Form) -> HttpResponse:
    run_for(person_of(request), page.run.pk, form.right)
    submission = form_id(request)
    if not actions.repeated(submission, person_of(request), form.action):
        if number and decide.owed(page.state, number) is None:
            raise Outdated(saw=_("B-%(number)d, open") % {"number": number}, now=_("not owed here any more"))
        form.act(request, page, number, submission)
    return to_run(page.run.pk, submission)


def _page(
    request: HttpRequest, page: Opened, number: int, form: Form, more: Context, *, status: int = 200
) -> HttpResponse:
    context = {**form.context(page, number), "submission": new_submission(), **more}
    return show_about(request, page, form.template, context, status=status)


def _again(
    request: HttpRequest, run_id: str, number: int, form: Form, error: Refusal, status: int
) -> HttpResponse:
    """The page as it is now, with what was typed."""
    page = opened(person_of(request), run_id)
    values = typed_again(request, *form.fields)
    more = refused_with(
        request, page, error, status, values, text=_("Nothing was recorded about what this run owes."),
        field=f"field-{form.fields[0]}", of_condition=obligations.why,
    )  # fmt: skip
    return _page(request, page, number, form, more, status=status)


def _obligation(page: Opened, number: int) -> s.Obligation:
    found = next((o for o in page.state.obligations if o.number == number), None)
    if found is None:
        raise Http404
    return found


def _owner(request: HttpRequest, page: Opened, errors: Errors) -> User | None:
    """Who was chosen among those who can keep it; else an error is added."""
    chosen = uuid_of(request.POST.get("owner", ""))
    found = next((p for p in actions.keepers(page.run) if p.pk == chosen), None)
    if found is None:
        errors.append({"field": "owner", "message": _("Choose who keeps it.")})
    return found


def _due(request: HttpRequest, errors: Errors) -> datetime | None:
    """The time in UTC that was typed; None where none was."""
    text = typed(request, "due")
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
    except ValueError:
        message = _("Enter a date and a time in UTC, such as 2026-11-30T07:00, or leave the field empty.")
        errors.append({"field": "due", "message": message})
        return None


def _text_errors(text: str, to: str) -> Errors:
    found = Errors()
    if not text:
        found.append({"field": "text", "message": _("Enter what the run owes.")})
    if len(to) > LONGEST_TO:
        facts = {"limit": LONGEST_TO, "length": len(to)}
        message = _("Use at most %(limit)d characters; these are %(length)d.") % facts
        found.append({"field": "to", "message": message})
    return [*found, *longer(text, "text")]


def _add(request: HttpRequest, page: Opened, number: int, submission: UUID) -> None:
    text, to, by = typed(request, "text"), typed(request, "to"), typed(request, "by")
    errors = _text_errors(text, to)
    owner, due_at = _owner(request, page, errors), _due(request, errors)
    if errors or owner is None:
        raise FormWrong(errors)
    actions.open_obligation(
        person=person_of(request), run_id=page.run.pk, text=text, to=to, owner=owner, due_at=due_at, by=by,
        submission=submission,
    )  # fmt: skip


def _attest(request: HttpRequest, page: Opened, number: int, submission: UUID) -> None:
    how, reference = typed(request, "how"), typed(request, "reference")
    errors = [*how_errors(how), *reference_too_long(reference)]
    if not reference:
        errors.append({"field": "reference", "message": obligations.why("reference_missing")[1]})
    if errors:
        raise FormWrong(errors)
    actions.attest_obligation(
        person=person_of(request), run_id=page.run.pk, obligation=number, how=how, reference=reference,
        submission=submission,
    )  # fmt: skip


def _hand_on(request: HttpRequest, page: Opened, number: int, submission: UUID) -> None:
    note = typed(request, "note")
    errors = longer(note, "note")
    owner = _owner(request, page, errors)
    if errors or owner is None:
        raise FormWrong(errors)
    actions.hand_on_obligation(
        person=person_of(request), run_id=page.run.pk, obligation=number, owner=owner, note=note,
        submission=submission,
    )  # fmt: skip


ADD = Form(
    template="runs/obligation_add.html", action="owe", right=Right.OPERATE_RUNS,
    fields=("text", "to", "due", "owner", "by"),
    context=lambda page, _number: obligations.add(page.run, page.state, page.reader, actions.keepers(page.run)),
    act=_add,
)  # fmt: skip
ATTEST = Form(
    template="runs/obligation_attest.html", action="attest_obligation", right=Right.ATTEST_EFFECTS,
    fields=("how", "reference"),
    context=lambda page, number: obligations.attest(page.run, page.state, _obligation(page, number), page.reader),
    act=_attest,
)  # fmt: skip
HAND_ON = Form(
    template="runs/obligation_hand_on.html", action="hand_on", right=Right.OPERATE_RUNS, fields=("note", "owner"),
    context=lambda page, number: obligations.hand_on(
        page.run, page.state, _obligation(page, number), page.reader, actions.keepers(page.run)
    ),
    act=_hand_on,
)  # fmt: skip
