"""Agents and their versions: what each promises, who serves it now, and which runs wait for it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.guards import On, guarded
from accounts.models import User
from accounts.rights import Right
from console import moves
from runs.access import agents_for
from runs.agents import queue_name, registered
from runs.clock import database_now
from runs.contract import sections
from runs.models import CLOSED, Run, Worker
from runs.views.frame import Context, console_page, person_of, shell, show

UNAVAILABLE = "version_unavailable"
Key = tuple[str, str]


@dataclass
class Known:
    """One agent version as this installation knows it."""

    title: str = ""
    open: int = 0
    stuck: int = 0
    workers: list[str] = field(default_factory=list)


@console_page
@guarded(On.PERSON)
@require_safe
def agents(request: HttpRequest, name: str = "") -> HttpResponse:
    """Every version of every agent that this person may see, or of one of them: registered here, served, or with open
    runs.
    """
    found = sorted(_known(person_of(request)).items())
    rows = [_row(key, known) for key, known in found if name in ("", key[0])]
    if name and not rows:
        raise Http404
    return show(request, "console/agents.html", {**shell(request), "agents": rows})


@console_page
@guarded(On.AGENT)
@require_safe
def agent(request: HttpRequest, name: str, version: str) -> HttpResponse:
    """The contract of one version, its workers and its runs."""
    key = (name, version)
    known = _known(person_of(request)).get(key)
    if known is None:
        raise Http404
    here = registered().get(key)
    context: Context = {
        "agent": _row(key, known),
        **moves.offered(person_of(request), key, idle=not known.workers),
        "list_url": reverse("agents"),
        "sections": sections(here) if here else [],
    }
    return show(request, "console/agent.html", {**shell(request), **context})


def _known(person: User) -> dict[Key, Known]:
    """The versions of the agents that the person may view, with what is going on in each."""
    visible = list(agents_for(person, Right.VIEW_RUNS))
    titles = {agent.name: agent.title for agent in visible}
    found: dict[Key, Known] = defaultdict(Known)
    for name, version in registered():
        found[name, version].title = registered()[name, version].title
    _add_runs(found, visible)
    _add_workers(found, titles)
    shown = {key: known for key, known in found.items() if key[0] in titles}
    for (name, _version), known in shown.items():
        known.title = known.title or titles[name]
    return shown


def _add_runs(found: dict[Key, Known], visible: list[Any]) -> None:
    stuck = Count("pk", filter=Q(state="needs_human", reasons__contains=[UNAVAILABLE]))
    runs = Run.objects.filter(agent__in=visible).exclude(state__in=CLOSED).order_by()
    for row in runs.values("agent__name", "agent_version").annotate(open=Count("pk"), stuck=stuck):
        known = found[row["agent__name"], row["agent_version"]]
        known.open, known.stuck = row["open"], row["stuck"]


def _add_workers(found: dict[Key, Known], titles: dict[str, str]) -> None:
    """Who was heard of within the version's grace. A version that nothing else names is read off the queue."""
    since = database_now() - settings.HANDOFF_DURATIONS.version_grace
    for worker in Worker.objects.filter(last_seen_at__gt=since).order_by("name"):
        for name in titles:
            before = queue_name(name, "")
            for queue in worker.serves:
                if queue.startswith(before):
                    found[name, queue.removeprefix(before)].workers.append(worker.name)


def _row(key: Key, known: Known) -> Context:
    name, version = key
    inbox = reverse("inbox")
    return {
        "name": name,
        "version": version,
        "title": known.title,
        "url": reverse("agent", args=[name, version]),
        "registered": key in registered(),
        "workers": known.workers,
        "open": known.open,
        "stuck": known.stuck,
        "runs_url": f"{inbox}?{urlencode({'view': 'any', 'agent': name})}",
        "stuck_url": f"{inbox}?{urlencode({'view': 'needs_human', 'agent': name})}",
        "note": _note(key, known),
    }


def _note(key: Key, known: Known) -> str:
    if known.stuck:
        return _("Runs of this version wait for a person, because no worker had their code.")
    if known.open and not known.workers:
        return _("No worker serves this version now. Its open runs wait.")
    return "" if known.workers else _("No worker serves this version now. It has no open run.")
