"""The one place where what refuses an action becomes an answer: its status, and a record of the attempt.

403 the person may not · 404 there is no such thing for this person · 409 it is not as the person saw it
422 what was sent cannot be recorded · 400 the form's id is none, or belongs to another action
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from accounts.address import client_address
from accounts.reauthentication import ReauthenticationNeeded
from accounts.rights import Right, holders
from approvals.attempts import record_refused
from approvals.outcomes import (
    CheckFailedError,
    DecisionRefusedError,
    NotAllowedError,
    ReasonMissingError,
    SeparationOfDutiesError,
    SubmissionReusedError,
    ValuesUnopenedError,
)
from runs.access import NotPermitted
from runs.actions import NoPlanToDecide
from runs.clock import database_now
from runs.ledger import LogUnreadable
from runs.limits import LONGEST_TEXT
from runs.machine.decide import ConclusionRefused
from runs.machine.transitions import Refused
from runs.models import Run
from runs.pages import who
from runs.views.frame import keep_texts, person_of, shell, show, submission_of

Errors = list[dict[str, str]]
#: The text fields of the forms whose action may ask for another sign-in.
KEPT_FIELDS = ("reason", "note", "how", "reference", "phrase")


class FormWrong(Exception):
    """What was sent is incomplete or not allowed here. `errors` names fields (parts/errors.html)."""

    def __init__(self, errors: Errors) -> None:
        self.errors = errors
        super().__init__("; ".join(error["message"] for error in errors))


def damaged() -> Errors:
    """What is said of a form without the id that every rendering of a form has."""
    return [{"field": "", "message": _("This form is damaged. Open the page again.")}]


def form_id(request: HttpRequest) -> UUID:
    """The form's id as it came back. Raises FormWrong where it is no id."""
    if (submission := submission_of(request)) is None:
        raise FormWrong(damaged())
    return submission


class Bare(FormWrong):
    """An answer that does not say to which question it is one: never guessed, also where only one is open."""


class Incompatible(FormWrong):
    """The version that was chosen cannot take the run over; `errors` say why."""


def longer(text: str, field: str) -> Errors:
    """The error of a text that is too long to be read by the next person."""
    if len(text) <= LONGEST_TEXT:
        return []
    facts = {"limit": LONGEST_TEXT, "length": len(text)}
    message = _("Use at most %(limit)d characters; these are %(length)d.") % facts
    return [{"field": field, "message": message}]


class Outdated(Exception):
    """The form was made for something that is not so any more; `saw` and `now` name it."""

    def __init__(self, *, saw: str, now: str) -> None:
        self.saw, self.now = saw, now
        super().__init__(f"{saw} -> {now}")


#: Everything that refuses an action. Whatever else is raised is a fault of ours.
REFUSALS = (
    NotPermitted, DecisionRefusedError, Refused, ConclusionRefused, NoPlanToDecide, LogUnreadable, FormWrong,
    Outdated,
)  # fmt: skip
Refusal = (
    NotPermitted
    | DecisionRefusedError
    | Refused
    | ConclusionRefused
    | NoPlanToDecide
    | LogUnreadable
    | FormWrong
    | Outdated
)


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What a person tried, for the record: on which subject, having seen which version, with which words."""

    run: Run
    action: str
    subject: str
    seen: str
    reason: str = ""


def attempt(
    request: HttpRequest,
    tried: Tried,
    act: Callable[[], HttpResponse],
    again: Callable[[Refusal, int], HttpResponse],
    *,
    page: str = "",
) -> HttpResponse:
    """Act; where it is refused, record that and answer with the page again, or with 403 and who can.

    Whose sign-in is too old signs in again first and comes back to `page` (the form's own address if it is empty),
    where what was typed still stands.
    """
    try:
        return act()
    except ReauthenticationNeeded as error:
        _record_old_sign_in(request, tried, error)
        back = page or request.path
        keep_texts(request, back, KEPT_FIELDS)
        return HttpResponseRedirect(f"{reverse('sign-in-again')}?{urlencode({'next': back})}")
    except REFUSALS as error:
        record(request, tried, error)
        status = status_of(error)
        return forbidden(request, tried.run, error) if status == 403 else again(error, status)


def _record_old_sign_in(request: HttpRequest, tried: Tried, error: ReauthenticationNeeded) -> None:
    keep_refused(
        request, tenant_id=tried.run.tenant_id, action=tried.action, subject=tried.subject, seen=tried.seen,
        refusal="sign_in_too_old", detail={"why": str(error)}, reason=tried.reason,
    )  # fmt: skip


def status_of(error: Refusal) -> int:
    """The HTTP status of a refusal."""
    match error:
        case NotPermitted() | NotAllowedError() | SeparationOfDutiesError():
            return 403
        case Bare():
            return 400
        case (
            FormWrong()
            | ReasonMissingError()
            | CheckFailedError()
            | ValuesUnopenedError()
            | ConclusionRefused()
        ):
            return 422
        case SubmissionReusedError():
            return 400
        case _:
            return 409


def code_of(error: Refusal) -> str:
    """The code under which the attempt is kept."""
    match error:
        case DecisionRefusedError():
            return error.code
        case NotPermitted():
            return "not_allowed"
        case ConclusionRefused():
            return f"condition:{error.condition}"
        case Incompatible():
            return "incompatible"
        case FormWrong():
            return "form"
        case _:
            return "stale"


def record(request: HttpRequest, tried: Tried, error: Refusal) -> None:
    """Keep the refused attempt."""
    facts: Mapping[str, object] = {"why": str(error)}
    keep_refused(
        request,
        tenant_id=tried.run.tenant_id,
        action=tried.action,
        subject=tried.subject,
        seen=tried.seen,
        refusal=code_of(error),
        detail=error.facts if isinstance(error, DecisionRefusedError) else facts,
        reason=tried.reason,
    )


def keep_refused(
    request: HttpRequest,
    *,
    tenant_id: UUID | None,
    action: str,
    subject: str,
    refusal: str,
    seen: str = "",
    detail: Mapping[str, object] = MappingProxyType({}),
    reason: str = "",
) -> None:
    """Keep a refused attempt of the signed-in person, with where it came from."""
    record_refused(
        tenant_id=tenant_id,
        person=person_of(request),
        action=action,
        subject=subject,
        seen=seen,
        refusal=refusal,
        detail=detail,
        reason=reason,
        at=database_now(),
        ip=client_address(request),
        request_id=getattr(request, "request_id", ""),
    )


def forbidden(request: HttpRequest, run: Run, error: Refusal) -> HttpResponse:
    """403 with the rule and the people who can."""
    right = _right_of(error)
    context = {
        "incident_id": getattr(request, "request_id", ""),
        "detail": _("You cannot do this with this run."),
        "rule": _rule_of(error),
        "who_can": who.who_can([p for p in holders(right, run) if p != person_of(request)]),
        "why_url": who.why_address(right, run.pk),
        "back_url": f"/runs/{run.pk}/",
        "back_label": _("Back to the run"),
    }
    return show(request, "errors/403.html", {**shell(request), **context}, status=403)


def _right_of(error: Refusal) -> Right:
    if isinstance(error, NotPermitted | NotAllowedError):
        return error.denial.right
    return Right.APPROVE_PLANS


def _rule_of(error: Refusal) -> str:
    if isinstance(error, NotPermitted | NotAllowedError):
        return error.denial.sentence
    return error.sentence if isinstance(error, DecisionRefusedError) else str(error)
