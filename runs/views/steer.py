"""Steering a run: cancel it, decide how a stopped one goes on, ask for approval again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid4

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.models import User
from accounts.rights import Right
from approvals.models import LEAST_REASON
from approvals.outcomes import DecisionRefusedError
from runs import actions
from runs.access import run_for
from runs.machine.transitions import Decision
from runs.pages import accepting, deciding, moving, relending, stopping
from runs.views.again import conflicting, errors_of, typed_again
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    person_of,
    typed,
)
from runs.views.pages import Opened, opened, show_about
from runs.views.refusals import (
    Errors,
    FormWrong,
    Incompatible,
    Outdated,
    Refusal,
    Tried,
    attempt,
    form_id,
    longer,
)
from runs.views.results import to_run

STOPPING = {"cancel": False, "undo": True}  #: what a person chooses -> whether it undoes
form_page = require_http_methods(["GET", "HEAD", "POST"])


@dataclass(frozen=True, kw_only=True)
class Form:
    """One of the pages here: its template, the words of its field, and what it does once it is sent."""

    template: str
    field: str
    action: str
    context: Callable[[Opened], Context]
    act: Callable[[HttpRequest, Opened, UUID], None]


@console_page
@guarded(On.RUN, acts=(Right.CANCEL_RUNS,))
@form_page
def stop(request: HttpRequest, run_id: str) -> HttpResponse:
    """End the run, at once or as soon as nothing is in flight: with what it did left, or undone where it can be."""
    return _serve(request, run_id, STOP)


@console_page
@guarded(On.RUN, acts=(Right.OPERATE_RUNS, Right.RESTART_RUNS, Right.CANCEL_RUNS))
@form_page
def decide(request: HttpRequest, run_id: str) -> HttpResponse:
    """Resume, retry or replan a run that needs a person."""
    return _serve(request, run_id, DECIDE)


@console_page
@guarded(On.RUN, acts=(Right.OPERATE_RUNS,))
@form_page
def renew(request: HttpRequest, run_id: str) -> HttpResponse:
    """Ask for approval of the plan version again, where its request expired or was voided."""
    return _serve(request, run_id, RENEW)


@console_page
@guarded(On.RUN, acts=(Right.OPERATE_RUNS,))
@form_page
def move(request: HttpRequest, run_id: str) -> HttpResponse:
    """Let another version of its agent go on with a run that waits."""
    return _serve(request, run_id, MOVE)


@console_page
@guarded(On.RUN, acts=(Right.START_RUNS,))
@form_page
def lend(request: HttpRequest, run_id: str) -> HttpResponse:
    """Lend anew to a run whose grant does not carry it any more."""
    return _serve(request, run_id, LEND)


def _serve(request: HttpRequest, run_id: str, form: Form) -> HttpResponse:
    page = opened(person_of(request), run_id)
    if request.method != "POST":
        return _page(request, page, form, {})
    action = request.POST.get("choice", "") if form is DECIDE else form.action
    tried = Tried(
        run=page.run,
        action=action or form.action,
        subject=run_id,
        seen=request.POST.get("subject", "") or f"version {request.POST.get('run_seq', '')}",
        reason=request.POST.get(form.field, ""),
    )
    return attempt(
        request,
        tried,
        lambda: _act(request, page, form),
        lambda error, status: _again(request, run_id, form, error, status),
    )


def _page(
    request: HttpRequest, page: Opened, form: Form, more: Context, *, status: int = 200
) -> HttpResponse:
    context = {**form.context(page), "submission": new_submission(), **more}
    return show_about(request, page, form.template, context, status=status)


def _act(request: HttpRequest, page: Opened, form: Form) -> HttpResponse:
    submission = form_id(request)
    if too_long := longer(typed(request, form.field), form.field):
        raise FormWrong(too_long)
    form.act(request, page, submission)
    return to_run(page.run.pk, submission)


def _again(request: HttpRequest, run_id: str, form: Form, error: Refusal, status: int) -> HttpResponse:
    page = opened(person_of(request), run_id)
    values = typed_again(request, "choice", "owner", form.field)
    if status != 409:
        return _page(request, page, form, {"values": values, "errors": errors_of(error)}, status=status)
    text, blank = _("Your decision was not recorded and nothing was sent."), {**values, "choice": ""}
    if isinstance(error, DecisionRefusedError):
        text = f"{text} {error.sentence}"
    kept = conflicting(request, page, error, blank, text=text, field=f"field-{form.field}")
    return _page(request, page, form, kept, status=409)


def _cancel(request: HttpRequest, page: Opened, submission: UUID) -> None:
    run_for(person_of(request), page.run.pk, Right.CANCEL_RUNS)
    note, choice = typed(request, "reason"), request.POST.get("choice", "")
    errors = (
        []
        if choice in STOPPING
        else [{"field": "choice", "message": _("Choose what becomes of what was done.")}]
    )
    owner = _owner(request, page)
    if owner is None:
        errors.append({"field": "owner", "message": _("Choose who keeps what the run still owes.")})
    if len(note) < LEAST_REASON:
        errors += _too_short("reason")
    if errors:
        raise FormWrong(errors)
    actions.cancel_run(
        person=person_of(request), run_id=page.run.pk, note=note, undo=STOPPING[choice], submission=submission,
        owner=owner,
    )  # fmt: skip


def _owner(request: HttpRequest, page: Opened) -> User | None:
    """Who was chosen to keep what the run still owes: the person where the form did not ask; None: nobody of those."""
    person = person_of(request)
    chosen = request.POST.get("owner") or str(person.pk)
    return next((p for p in (person, *actions.keepers(page.run)) if str(p.pk) == chosen), None)


def _too_short(field: str) -> Errors:
    message = _("Enter a reason of at least 10 characters. The next operator will read it.")
    return [{"field": field, "message": message}]


def _decide(request: HttpRequest, page: Opened, submission: UUID) -> None:
    person = person_of(request)
    choice = request.POST.get("choice", "")
    known = choice in [d.value for d in stopping.DECIDABLE]
    run_for(person, page.run.pk, deciding.right_of(Decision(choice)) if known else Right.OPERATE_RUNS)
    if not known:
        raise FormWrong([{"field": "choice", "message": _("Choose how the run goes on.")}])
    if actions.repeated(submission, person, choice):
        return
    _same_subject(request, page)
    note = typed(request, "note")
    if choice == Decision.RESTART.value:
        actions.restart_run(person=person, run_id=page.run.pk, note=note, submission=submission)
    elif choice == Decision.END.value:
        actions.end_run(person=person, run_id=page.run.pk, note=note, submission=submission)
    else:
        decision = Decision(choice)
        actions.decide_run(
            person=person, run_id=page.run.pk, decision=decision, note=note, submission=submission
        )


def _move(request: HttpRequest, page: Opened, submission: UUID) -> None:
    person = person_of(request)
    run_for(person, page.run.pk, Right.OPERATE_RUNS)
    if actions.repeated(submission, person, "move"):
        return
    _same_subject(request, page)
    version, note = request.POST.get("choice", ""), typed(request, "note")
    if not version:
        raise FormWrong([{"field": "choice", "message": _("Choose the version that goes on with the run.")}])
    if len(note) < LEAST_REASON:
        raise FormWrong(_too_short("note"))
    try:
        actions.move_run(person=person, run_id=page.run.pk, version=version, note=note, submission=submission)
    except actions.MoveRefused as error:
        raise Incompatible([{"field": "choice", "message": moving.sentences(error.obstacles)}]) from error


def _lend(request: HttpRequest, page: Opened, submission: UUID) -> None:
    person = person_of(request)
    run_for(person, page.run.pk, Right.START_RUNS)
    if actions.repeated(submission, person, "lend"):
        return
    _same_subject(request, page)
    choice, note = request.POST.get("choice", ""), typed(request, "note")
    errors = []
    if choice not in (relending.REST, relending.UNLIMITED):
        errors = [{"field": "choice", "message": _("Choose up to how much you lend.")}]
    if len(note) < LEAST_REASON:
        errors += _too_short("note")
    if errors:
        raise FormWrong(errors)
    actions.lend_anew(
        person=person, run_id=page.run.pk, scopes=relending.scopes(page.run, page.state), note=note,
        budget=relending.rest(page.state) if choice == relending.REST else None, submission=submission,
    )  # fmt: skip


def _renew(request: HttpRequest, page: Opened, submission: UUID) -> None:
    person = person_of(request)
    run_for(person, page.run.pk, Right.OPERATE_RUNS)
    if actions.repeated(submission, person, "renew"):
        return
    _same_subject(request, page)
    actions.renew_request(person=person, run_id=page.run.pk, request=uuid4(), submission=submission)


def _same_subject(request: HttpRequest, page: Opened) -> None:
    """The run stands still for the same reasons, with the same plan, as on the person's page. Raises Outdated."""
    if request.POST.get("subject") != stopping.subject(page.state):
        saw = _("the run as of version %(seq)s") % {"seq": request.POST.get("run_seq", "?")}
        now = _("the run as of version %(seq)s, with other reasons or another plan") % {"seq": page.state.seq}
        raise Outdated(saw=saw, now=now)


def _movable(page: Opened) -> Context:
    """Moving as one of the things that can be done with the run: it has a page of its own."""
    return {
        "move": moving.link(page.run, page.state),
        "lend": relending.link(page.run, page.state),
        "accept": accepting.link(page.state),
    }


STOP = Form(
    template="runs/stop.html",
    field="reason",
    action="cancel",
    context=lambda page: {**stopping.stop(page.run, page.state, page.reader), **_movable(page)},
    act=_cancel,
)
DECIDE = Form(
    template="runs/decide.html",
    field="note",
    action="decide",
    context=lambda page: {**stopping.decide(page.run, page.state, page.reader), **_movable(page)},
    act=_decide,
)
RENEW = Form(
    template="runs/decide.html",
    field="note",
    action="renew",
    context=lambda page: stopping.renew(page.run, page.state, page.reader),
    act=_renew,
)
LEND = Form(
    template="runs/decide.html",
    field="note",
    action="lend",
    context=lambda page: relending.lend(page.run, page.state, page.reader),
    act=_lend,
)
MOVE = Form(
    template="runs/decide.html",
    field="note",
    action="move",
    context=lambda page: moving.move(page.run, page.state, page.reader),
    act=_move,
)
