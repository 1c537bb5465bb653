"""The handoff of a run: to print, as text for a ticket, as Markdown, and as JSON."""

from __future__ import annotations

import msgspec
from django.http import HttpRequest, HttpResponse
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts.guards import On, guarded
from accounts.zones import in_utc
from runs.machine import handoff_document
from runs.machine.handoff_document import Handoff
from runs.pages import handoff_words, next_action, print_view, run_page
from runs.pages.handoff_markdown import markdown
from runs.views.frame import Context, console_page, person_of, shell, show
from runs.views.pages import Opened, known, opened, predecessor

SCHEMA = "schemas/handoff-1.json"
#: What the print view has beside the sections of the run page.
ADDED = ("never", "assumptions", "requests", "decisions")


def _document(page: Opened) -> Handoff:
    rights = frozenset(right.value for right in page.reader.mine)
    return handoff_document.document(page.state, page.reader.now, rights=rights)


def _address(request: HttpRequest, run_id: str) -> str:
    return request.build_absolute_uri(reverse("run", args=[run_id]))


@console_page
@in_utc
@guarded(On.RUN)
@require_safe
def handoff(request: HttpRequest, run_id: str) -> HttpResponse:
    """The handoff to print; with `?format=text` as plain text, with `?format=markdown` as Markdown."""
    page = opened(person_of(request), run_id)
    found, kind = _document(page), request.GET.get("format")
    if kind == "markdown":
        action = next_action.shown(page.state, page.reader.mine)
        text = markdown(found, action, url=_address(request, run_id))
        return HttpResponse(text, content_type="text/markdown; charset=utf-8")
    context = _printed(request, page, found)
    if kind == "text":
        return HttpResponse(print_view.text(context, page.state), content_type="text/plain; charset=utf-8")
    return show(request, "runs/handoff.html", {**shell(request, now=page.reader.now), **context})


def _printed(request: HttpRequest, page: Opened, found: Handoff) -> Context:
    person = page.reader.person
    whole = run_page.context(
        page.run, page.log, page.state, page.reader, older=None, saw=None, known=known(person, page.state)
    )
    whole["predecessor"] = predecessor(person, page.run)
    context = print_view.context(
        whole, page.state, by=person.shown_name, at=page.reader.now, url=_address(request, page.run.pk)
    )
    context["more"] = handoff_words.sections(found, only=ADDED)
    context["may"] = handoff_words.may(found)
    context["json_url"], context["schema_url"] = (
        reverse("run-handoff-json", args=[page.run.pk]),
        static(SCHEMA),
    )
    return context


@console_page
@guarded(On.RUN)
@require_safe
def handoff_json(request: HttpRequest, run_id: str) -> HttpResponse:
    """The handoff for programs; its schema is a static file."""
    body = msgspec.json.encode(_document(opened(person_of(request), run_id)))
    answer = HttpResponse(body, content_type="application/json")
    answer["Link"] = f'<{request.build_absolute_uri(static(SCHEMA))}>; rel="describedby"'
    return answer
