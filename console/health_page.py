"""The page about health: what stands still, since when, and whether anybody is there to move it.

Everything is counted from stored rows at the time that the page names, over the runs that the person may see. Of the
installation as a whole it says what `/readyz` tells everybody, and which workers serve agents that the person may see;
whoever manages organisations sees every worker.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from accounts.guards import On, guarded
from accounts.models import User
from accounts.organisations import may_organise
from accounts.rights import Right
from console import health_lines
from console.durations import durations
from runs.access import agents_for
from runs.agents import queue_name
from runs.clock import database_now
from runs.models import Sweep, Worker
from runs.views.frame import Context, console_page, person_of, shell, show

log = structlog.get_logger(__name__)
#: For so long a worker that fell silent stays on the page.
REMEMBERED: Final = timedelta(hours=24)
Lines = Callable[[User, datetime], list[health_lines.Line]]
#: key -> title, what is counted, what is said where there is nothing, and the lines.
PANELS: Final[dict[str, tuple[Promise, Promise, Promise, Lines]]] = {
    "work": (
        _("Work for workers"),
        _("Open runs that a worker has to move. While all is well each is taken within seconds."),
        _("Nothing is due."),
        health_lines.work,
    ),
    "doubts": (
        _("Effects with an unknown outcome"),
        _("Sent, and without a receipt: what became of them has to be asked or attested."),
        _("Every effect that was sent has a receipt or a conclusion."),
        health_lines.doubts,
    ),
    "approvals": (
        _("Approvals"),
        _("Runs whose plan waits for people."),
        _("No run waits for approval."),
        health_lines.approvals,
    ),
    "ended": (
        _("How requests for approval ended"),
        _("Requests that ended in the last 28 days, each once."),
        _("No request for approval ended in the last 28 days."),
        health_lines.ended,
    ),
    "reasons": (
        _("Why runs need a person"),
        _("Runs by reason. A run that stopped for several reasons is counted for each."),
        _("No run needs a person."),
        health_lines.reasons,
    ),
    "obligations": (
        _("Obligations"),
        _("What runs promised and nobody has done, each obligation counted once."),
        _("Nothing that was promised is open."),
        health_lines.obligations,
    ),
    "constraints": (
        _("Changed constraints"),
        _("Constraints that changed or were withdrawn, until every run that accepted them was told. None of these runs "
          "acts on the old text meanwhile."),
        _("Every run knows of every change."),
        health_lines.constraints,
    ),
    "documents": (
        _("Configured documents"),
        _("Documents outside the console that constraints of the agents come from which you may see."),
        _("No document is configured for an agent that you may see."),
        health_lines.documents,
    ),
    "states": (
        _("Runs by state"),
        _("All runs that you may see."),
        _("There is no run that you may see."),
        health_lines.states,
    ),
}  # fmt: skip


@console_page
@guarded(On.PERSON)
@require_safe
def health(request: HttpRequest) -> HttpResponse:
    """Numbers with what they count, the oldest of each, and the list behind them where there is one."""
    person, now = person_of(request), database_now()
    context: Context = {
        "fleet": _tried("fleet", lambda: _fleet(person, now)),
        "panels": [_panel(key, person, now) for key in PANELS],
    }
    return show(request, "console/health.html", {**shell(request, now=now), **context})


def _panel(key: str, person: User, now: datetime) -> Context:
    title, text, nothing, lines = PANELS[key]
    found = _tried(key, lambda: lines(person, now))
    return {
        "key": key,
        "title": title,
        "text": text,
        "nothing": nothing,
        "lines": found,
        "failed": found is None,
        "empty": found is not None and not any(line["number"] for line in found),
    }


def _tried(key: str, ask: Callable[[], Any]) -> Any:
    """What was found; None where the database did not say, which the page calls unavailable."""
    try:
        return ask()  # in no transaction, so that one that fails keeps none of the others from being asked
    except DatabaseError:
        log.exception("health_unavailable", panel=key)
        return None


def _fleet(person: User, now: datetime) -> Context:
    """The last sweep, and the workers that this person may know of, the last heard of first."""
    sweep = Sweep.objects.first()
    shown = None if may_organise(person) else {agent.name for agent in agents_for(person, Right.VIEW_RUNS)}
    seen = Worker.objects.filter(last_seen_at__gt=now - REMEMBERED).order_by("-last_seen_at", "name")
    return {
        "swept_at": sweep.at if sweep else None,
        "late": sweep is None or now - sweep.at > health_lines.lag(),
        "workers": [row for worker in seen if (row := _worker(worker, shown, now))],
    }


def _worker(worker: Worker, shown: set[str] | None, now: datetime) -> Context | None:
    """None for one that serves nothing that the person may see."""
    before = None if shown is None else tuple(queue_name(name, "") for name in shown)
    serves = [queue for queue in worker.serves if queue.startswith("agent.")]
    mine = [queue for queue in serves if before is None or queue.startswith(before)]
    if before is not None and not mine:
        return None
    return {
        "name": worker.name,
        "serves": [queue.removeprefix("agent.") for queue in mine],
        "started_at": worker.started_at,
        "seen_at": worker.last_seen_at,
        "silent": now - worker.last_seen_at > durations().worker_silent,
    }
