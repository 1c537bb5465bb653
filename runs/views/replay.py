"""The replay viewer: a run's log, one event at a time. Nothing on it can change the run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.guards import On, guarded
from runs import seeing
from runs.access import run_for
from runs.pages import replaying
from runs.replay import read_only
from runs.replay import replay as replayed
from runs.views.frame import console_page, number, person_of, shell, show


@console_page
@guarded(On.RUN)
@require_safe
def replay(request: HttpRequest, run_id: str) -> HttpResponse:
    """One event of the run; `?seq=` picks it, else the last. Where there is no such event, that is said."""
    with read_only():
        run = run_for(person_of(request), run_id)
        shows = seeing.bodies(person_of(request), run)
        found = replayed(run.pk, seq=number(request.GET.get("seq")), shows=shows)
        asked = request.GET.get("seq", "")
        context = {**shell(request), **replaying.context(run, found, asked=asked)}
        return show(request, "runs/replay.html", context)
