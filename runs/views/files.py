"""The artifacts of a run: listed, attached by a person, and downloaded as they were kept. None is ever rendered."""

from __future__ import annotations

import logging

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts.guards import On, guarded
from accounts.rights import Right
from runs import actions, artifacts
from runs.access import run_for
from runs.limits import LARGEST_FILE
from runs.machine.canonical import plain
from runs.pages import files, who, words
from runs.views.frame import Context, console_page, new_submission, person_of, shell, show
from runs.views.pages import Opened, opened, show_about
from runs.views.refusals import FormWrong, Refusal, Tried, attempt, form_id
from runs.views.results import result_of

log = logging.getLogger(__name__)

#: Whatever the file is: saved and not shown, not guessed at, and powerless where a browser shows it all the same.
INERT = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@console_page
@guarded(On.RUN, acts=(Right.OPERATE_RUNS,))
@require_http_methods(["GET", "HEAD", "POST"])
def run_artifacts(request: HttpRequest, run_id: str) -> HttpResponse:
    """The list; a POST attaches a file."""
    page = opened(person_of(request), run_id)
    if request.method != "POST":
        return _page(request, page, {"result": result_of(request, run_id, person_of(request))})
    tried = Tried(run=page.run, action="attach", subject=run_id, seen=f"version {page.state.seq}")
    return attempt(
        request,
        tried,
        lambda: _attach(request, page),
        lambda error, status: _page(request, page, {"errors": _errors(error)}, status=status),
    )


@console_page
@guarded(On.RUN)
@require_safe
def run_artifact(request: HttpRequest, run_id: str, artifact: int) -> HttpResponse:
    """The bytes, verified just now."""
    page = opened(person_of(request), run_id)
    kept = page.state.artifacts.get(artifact)
    if kept is None:
        raise Http404
    try:
        data = artifacts.get(page.run.tenant_id, kept.hash)
    except artifacts.ArtifactUnreadable as error:
        log.exception("an artifact cannot be read", extra={"run": run_id})
        return _unreadable(request, run_id, error)
    if page.reader.hidden and files.holds_hidden(page.reader.hidden, kept, data):
        return _hidden(request, page)
    name = files.safe_name(kept.name) or f"A-{kept.number}"
    disposition = content_disposition_header(True, name) or "attachment"
    headers = {**INERT, "Content-Disposition": disposition}
    return HttpResponse(data, content_type="application/octet-stream", headers=headers)


def _hidden(request: HttpRequest, page: Opened) -> HttpResponse:
    """403: a file is sent as it was kept or not at all, and this one holds what the person may not see."""
    detail = _("This file holds values that are hidden from you, so it was not sent.")
    people = page.reader.holders[Right.SEE_VALUES]
    context = {
        "incident_id": getattr(request, "request_id", ""),
        "detail": detail,
        "rule": who.why_not(page.reader.person, Right.SEE_VALUES, people),
        "why_url": who.why_address(Right.SEE_VALUES, page.run.pk),
        "back_url": reverse("run-artifacts", args=[page.run.pk]),
        "back_label": _("Back to the list"),
    }
    return show(request, "errors/403.html", {**shell(request), **context}, status=403)


def _page(request: HttpRequest, page: Opened, more: Context, *, status: int = 200) -> HttpResponse:
    context = {**files.context(page.run, page.state, page.reader), "submission": new_submission(), **more}
    return show_about(request, page, "runs/artifacts.html", context, status=status)


def _attach(request: HttpRequest, page: Opened) -> HttpResponse:
    person = person_of(request)
    run_for(person, page.run.pk, Right.OPERATE_RUNS)
    submission = form_id(request)
    name, media_type, data = _sent(request)
    try:
        actions.attach_file(
            person=person,
            run_id=page.run.pk,
            name=name,
            media_type=media_type,
            data=data,
            submission=submission,
        )
    except artifacts.ArtifactNotKept as error:
        log.exception("a file could not be kept", extra={"run": page.run.pk})
        message = _("The storage did not take the file. Nothing was recorded. Try again later.")
        raise FormWrong([{"field": "file", "message": message}]) from error
    return HttpResponseRedirect(f"{reverse('run-artifacts', args=[page.run.pk])}?done={submission}")


def _sent(request: HttpRequest) -> tuple[str, str, bytes]:
    """The file as it was sent: name, what the browser takes it for, bytes. Raises FormWrong."""
    file = request.FILES.get("file")
    if file is None or not file.size:
        message = _("Choose a file that is not empty. Nothing was recorded.")
        raise FormWrong([{"field": "file", "message": message}])
    if file.size > LARGEST_FILE:
        facts = {"size": words.file_size(file.size), "most": words.file_size(LARGEST_FILE)}
        message = _("The file has %(size)s; at most %(most)s are kept. Nothing was recorded.") % facts
        raise FormWrong([{"field": "file", "message": message}])
    return files.safe_name(file.name or "") or _("file"), plain(file.content_type or "")[:100], file.read()


def _errors(error: Refusal) -> list[dict[str, str]]:
    return error.errors if isinstance(error, FormWrong) else [{"field": "", "message": str(error)}]


def _unreadable(request: HttpRequest, run_id: str, error: artifacts.ArtifactUnreadable) -> HttpResponse:
    """409: the bytes are not there as they were kept."""
    detail = _(
        "%(hash)s cannot be read as it was kept, so nothing was sent to you. The run and its log are whole. Ask the "
        "people who run this console to put the file back from a copy: %(why)s"
    )
    context = {
        "incident_id": getattr(request, "request_id", ""),
        "detail": detail % {"hash": error.hash, "why": error},
        "back_url": reverse("run-artifacts", args=[run_id]),
        "back_label": _("Back to the list"),
    }
    return show(request, "errors/409.html", {**shell(request), **context}, status=409)
