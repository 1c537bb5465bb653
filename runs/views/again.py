"""The page again after a refusal: what was typed stays, what is wrong is said, and a conflict is shown."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from runs.machine.decide import ConclusionRefused
from runs.pages.conflict import conflict
from runs.pages.reviewing import same_phrase
from runs.views.frame import Context, number, shell, show
from runs.views.pages import Opened
from runs.views.refusals import Errors, FormWrong, Outdated, Refusal


def errors_of(error: Refusal, of_condition: Callable[[str], tuple[str, str]] | None = None) -> Errors:
    """The form's errors. `of_condition` gives field and sentence of the condition under which a conclusion failed."""
    if isinstance(error, FormWrong):
        return error.errors
    if isinstance(error, ConclusionRefused) and of_condition:
        field, message = of_condition(error.condition)
        return [{"field": field, "message": message}]
    return [{"field": "", "message": str(error)}]


def typed_again(request: HttpRequest, *fields: str) -> dict[str, str]:
    """What was sent in these fields, as it was typed."""
    return {name: request.POST.get(name, "") for name in fields}


def conflicting(
    request: HttpRequest, page: Opened, error: Refusal, values: dict[str, str], *, text: str, field: str
) -> Context:
    """What a page shows beside itself after a conflict. `values` are those that may be sent once more."""
    compared = [{"saw": error.saw, "now": error.now}] if isinstance(error, Outdated) else []
    since = number(request.POST.get("run_seq"))
    panel = conflict(page.state, page.log, text=text, since=since, compared=compared, field=field)
    return {"values": values, "conflict": panel}


def refused_with(
    request: HttpRequest,
    page: Opened,
    error: Refusal,
    status: int,
    values: dict[str, str],
    *,
    text: str,
    field: str,
    of_condition: Callable[[str], tuple[str, str]] | None = None,
) -> Context:
    """What a page shows beside itself after a refusal with this status: the conflict, or what is wrong in the form."""
    if status == 409:
        return conflicting(request, page, error, values, text=text, field=field)
    return {"values": values, "errors": errors_of(error, of_condition)}


def refused_bare(request: HttpRequest, run_id: str, error: Refusal, status: int) -> HttpResponse:
    """The answer to a refused form that has no page of its own: what was wrong, and the way back to the run."""
    context = {
        "incident_id": getattr(request, "request_id", ""),
        "detail": " ".join(x["message"] for x in errors_of(error)),
        "back_url": reverse("run", args=[run_id]),
        "back_label": _("Back to the run"),
    }
    return show(request, f"errors/{status}.html", {**shell(request), **context}, status=status)


def phrase_errors(request: HttpRequest, phrase: str) -> Errors:
    """The error of a phrase that is not the one to be typed; none where none is asked for."""
    if not phrase or same_phrase(request.POST.get("phrase", ""), phrase):
        return []
    return [
        {"field": "phrase", "message": _("The phrase does not fit: type %(phrase)s") % {"phrase": phrase}}
    ]
