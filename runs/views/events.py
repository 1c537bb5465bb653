"""The raw log: every event as it was stored, with its hash and the one before."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.guards import On, guarded
from accounts.zones import in_utc
from runs import seeing
from runs.access import run_for
from runs.ledger import chain_problem
from runs.machine.events import TYPES
from runs.models import Event, Run
from runs.pages import words
from runs.pages.values import indented
from runs.views.frame import Context, console_page, number, person_of, query_value, shell, show
from runs.views.pages import notices_of

PAGE = 50


@console_page
@in_utc
@guarded(On.RUN)
@require_safe
def events(request: HttpRequest, run_id: str) -> HttpResponse:
    """A page of events, newest first; `?type=` filters, `?from=` begins at an event, `?format=json` gives all."""
    run = run_for(person_of(request), run_id)
    shows = seeing.bodies(person_of(request), run)
    type_ = query_value(request, "type")
    found = Event.objects.filter(run_id=run.pk).order_by("-seq")
    if type_:
        found = found.filter(type=type_)
    if request.GET.get("format") == "json":
        return _download(run, list(found.order_by("seq")), shows)
    first = number(request.GET.get("from"))
    shown = list((found.filter(seq__lte=first) if first else found)[: PAGE + 1])
    context: Context = {
        "run": {"id": run.pk, "title": run.goal, "seq": run.seq, "url": reverse("run", args=[run.pk])},
        "events": [_row(event, _body(event, shows)) for event in shown[:PAGE]],
        "types": sorted(TYPES),
        "type": type_,
        "verified": _verified(run),
        "rereduce_url": reverse("run-rereduce", args=[run.pk]),
        **_paging(shown, first, type_),
    }
    frame = shell(request, notices=notices_of(run.pk, run.seq))
    return show(request, "runs/events.html", {**frame, **context})


def _body(event: Event, shows: seeing.Body) -> str | None:
    return shows(event.seq, event.type, event.version, event.body)


def _row(event: Event, body: str | None) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "at": event.at,
        "type": event.type,
        "actor": event.actor_name,
        "hash": bytes(event.hash).hex(),
        "previous": bytes(event.previous).hex(),
        "body": None if body is None else indented(body),
    }


def _paging(shown: list[Event], first: int | None, type_: str) -> Context:
    kept = {"type": type_} if type_ else {}
    found: Context = {"json_url": "?" + urlencode({**kept, "format": "json"})}
    if len(shown) > PAGE:
        found["older_url"] = "?" + urlencode({**kept, "from": shown[PAGE].seq})
    if first is not None:
        found["newer_url"] = "?" + urlencode({**kept, "from": first + PAGE})
    return found


def _verified(run: Run) -> str:
    problem = chain_problem(run.pk)
    if problem:
        return _("The chain of hashes is broken: %(problem)s.") % {"problem": words.inside(problem)}
    return _("The chain of hashes is whole up to event %(seq)d.") % {"seq": run.seq}


def _download(run: Run, found: list[Event], shows: seeing.Body) -> HttpResponse:
    """All events as one JSON document; each body is the stored text, whose digest the chain holds, as far as it may be
    seen.
    """
    shown = [
        {
            "seq": x.seq, "at": x.at.isoformat(), "type": x.type, "version": x.version, "actor_kind": x.actor_kind,
            "actor_id": x.actor_id, "actor_name": x.actor_name, "state_before": x.state_before,
            "state_after": x.state_after, "body": _body(x, shows), "body_digest": bytes(x.body_digest).hex(),
            "previous": bytes(x.previous).hex(), "hash": bytes(x.hash).hex(),
        }
        for x in found
    ]  # fmt: skip
    text = json.dumps({"run": run.pk, "seq": run.seq, "events": shown}, ensure_ascii=False, indent=1)
    named = {"Content-Disposition": f'attachment; filename="{run.pk}-events.json"'}
    return HttpResponse(text, content_type="application/json", headers=named)
