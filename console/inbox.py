"""The inbox and the list of all runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts.guards import On, guarded, open_to_all
from accounts.models import User
from accounts.rights import Right
from console.inbox_rows import groups
from console.templatetags.labels import RUN
from console.together import bar
from runs.access import agents_for, visible_runs
from runs.clock import database_now
from runs.machine.state import State
from runs.models import CLOSED, Agent
from runs.pages import words
from runs.pages.paging import paging
from runs.queries import TIERS, VIEWS, actionable, annotated, by_urgency, closed_today, counts, operates
from runs.views.frame import Context, console_page, number, person_of, shell, show, value_in
from runs.working import worked_on_by, worked_on_by_nobody

log = structlog.get_logger(__name__)

PAGE = 50
TABS: dict[str, Promise] = {
    "all": gettext_lazy("All"),
    "unknown": gettext_lazy("Unknown outcome"),
    "needs_human": gettext_lazy("Needs a person"),
    "waiting_approval": gettext_lazy("Waiting for approval"),
    "closed": gettext_lazy("Closed today"),
}


#: Who claims a run, or to whom it is assigned; without one of these it may be anybody.
CLAIMED = ("me", "nobody")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the address asks for."""

    view: str
    agent: str
    risk: str
    state: str
    reason: str
    parent: str
    q: str
    mine: bool
    claimed: str
    page: int

    @classmethod
    def of(cls, request: HttpRequest, *, mine: bool) -> Asked:
        """From the address; `mine` is this person's default where no filter form was sent."""
        return cls.read(request.GET, mine=mine)

    @classmethod
    def read(cls, sent: QueryDict, *, mine: bool = False) -> Asked:
        """From a query, such as one that was kept under a name."""
        view = sent.get("view", "all")
        return cls(
            view=view if view in TABS or view == "any" else "all",
            agent=value_in(sent, "agent"),
            risk=sent.get("risk", "") if sent.get("risk") in TIERS else "",
            state=sent.get("state", "") if sent.get("state") in RUN else "",
            reason=sent.get("reason", "") if sent.get("reason") in words.REASONS else "",
            parent=value_in(sent, "parent"),
            q=value_in(sent, "q"),
            mine=sent.get("mine") == "1" if "view" in sent else mine,
            claimed=sent.get("claimed", "") if sent.get("claimed") in CLAIMED else "",
            page=number(sent.get("page")) or 1,
        )

    def url(self, **changed: object) -> str:
        """The same question with other values, as a query."""
        values = {
            "view": self.view, "agent": self.agent, "risk": self.risk,
            "state": self.state, "reason": self.reason, "parent": self.parent, "q": self.q,
            "mine": "1" if self.mine else "", "claimed": self.claimed, "page": self.page, **changed,
        }  # fmt: skip
        return "?" + urlencode({k: v for k, v in values.items() if v and (k, v) != ("page", 1)})


@open_to_all
def home(request: HttpRequest) -> HttpResponse:
    """The console begins at the inbox."""
    return HttpResponseRedirect(reverse("inbox"))


@console_page
@guarded(On.PERSON)
@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """Runs that wait for a person, most pressing first; with view=any all runs, the last to change first."""
    person = person_of(request)
    asked = Asked.of(request, mine=operates(person))
    now = database_now()
    context = {**_list(person, asked, now), "view": asked.view, "filters": asked, "q": asked.q}
    context["reason_text"] = words.reason_alone(asked.reason) if asked.reason else ""
    context |= {**bar(), "back": asked.url()}
    notices = reverse("inbox-notices") + asked.url(since=now.isoformat(), page=1)
    return show(request, "console/inbox.html", {**shell(request, now=now, notices=notices), **context})


@open_to_all
def all_runs(request: HttpRequest) -> HttpResponse:
    """Every run: the inbox's table without a default filter."""
    return HttpResponseRedirect(reverse("inbox") + "?view=any")


def filtered(person: User, asked: Asked, now: datetime) -> QuerySet[Any]:
    """The runs that the filters leave, in every view."""
    return annotated(person, now).filter(narrowed(asked))


def narrowed(asked: Asked) -> Q:
    """What the filters leave, of runs that are `annotated`."""
    found = Q()
    if asked.agent:
        found &= Q(agent__name=asked.agent)
    if asked.risk:
        found &= Q(tier=TIERS.index(asked.risk))
    if asked.state:
        found &= Q(state=asked.state)
    if asked.reason:
        found &= Q(reasons__contains=[asked.reason])
    if asked.parent:
        found &= Q(parent_id=asked.parent)
    if asked.q:
        found &= _searched(asked.q)
    return found


def _searched(text: str) -> Q:
    """The goal holds the text, or the run's id, its parent's or the beginning of its start key is it.

    A number must stand whole in the goal, or an order's number would find amounts. A start key ends in a
    digest, in which any digits may stand, so only its beginning counts.
    """
    whole = rf"(^|[^0-9]){text}([^0-9]|$)"
    goal = Q(goal__regex=whole) if text.isascii() and text.isdigit() else Q(goal__icontains=text)
    parent = Q(parent_id=text[:4].lower() + text[4:].upper())
    return goal | Q(pk__iexact=text) | parent | Q(start_key__istartswith=text)


def views_of(person: User, asked: Asked, now: datetime) -> dict[str, Q]:
    """Each view as a filter, with who works on its runs. "I can act" is about what waits, so neither closed runs nor
    "any" ask for it.
    """
    mine, claimed = actionable(person) if asked.mine else Q(), _claimed(person, asked, now)
    found = {**{name: view & mine for name, view in VIEWS.items()}, "closed": closed_today(now), "any": Q()}
    return {name: view & claimed for name, view in found.items()}


def _claimed(person: User, asked: Asked, now: datetime) -> Q:
    if asked.claimed == "me":
        return worked_on_by(person, now)
    return worked_on_by_nobody(now) if asked.claimed == "nobody" else Q()


def tabs(runs: QuerySet[Any], views: dict[str, Q], asked: Asked) -> list[dict[str, Any]]:
    """The tabs, each with how many rows it lists; None where they could not be counted."""
    found: dict[str, int | None] = dict.fromkeys(TABS)
    try:
        with transaction.atomic():
            found |= counts(runs, {name: views[name] for name in TABS})
    except DatabaseError:
        log.exception("counts_failed")
    return [_tab(key, label, found[key], asked) for key, label in TABS.items()]


def _tab(key: str, label: Promise, count: int | None, asked: Asked) -> dict[str, Any]:
    url = asked.url(view=key, page=1)
    return {"key": key, "label": label, "url": url, "count": count, "current": key == asked.view}


def _list(person: User, asked: Asked, now: datetime) -> Context:
    runs = filtered(person, asked, now)
    views = views_of(person, asked, now)
    found = {"counts": tabs(runs, views, asked), "agents": agents_seen(person), "states": _states(asked)}
    try:
        with transaction.atomic():
            return {**found, **_rows(runs.filter(views[asked.view]), person, asked, now)}
    except DatabaseError:
        log.exception("list_failed")
        return {**found, "failed": True}


#: States that hold runs in each view that is not about one state alone.
_STATES = {
    "all": ("unknown", "needs_human", "waiting_approval", "succeeded", "cancelled"),
    "closed": ("succeeded", "cancelled", "restarted"),
}


def _states(asked: Asked) -> list[dict[str, object]]:
    """The states to choose from in this view; none where it holds one only."""
    if asked.view in ("unknown", "needs_human", "waiting_approval") and not asked.state:
        return []
    shown = _STATES.get(asked.view, tuple(state.value for state in State))
    return [{"value": x, "label": RUN[x].text} for x in dict.fromkeys((*shown, *filter(None, [asked.state])))]


def _rows(runs: QuerySet[Any], person: User, asked: Asked, now: datetime) -> Context:
    ranked = asked.view not in ("closed", "any")
    total = runs.count()
    pages = max(1, -(-total // PAGE))
    page = min(asked.page, pages)
    ordered = by_urgency(runs) if ranked else runs.order_by("-since", "pk")
    shown = list(ordered[(page - 1) * PAGE : page * PAGE])
    return {
        "groups": groups(shown, person, now, ranked=ranked),
        "total": total,
        "sort_text": _sorted_by(ranked),
        "paging": paging(page, pages, lambda n: asked.url(page=n)),
        **({} if total else _empty(person, asked, now)),
    }


def _sorted_by(ranked: bool) -> str:
    if ranked:
        return _(
            "Sorted by risk, then effects that only a person can settle, then what is overdue, then oldest."
        )
    return _("By age, the newest first.")


def _empty(person: User, asked: Asked, now: datetime) -> Context:
    """Why there is nothing: no right, filtered away, or nothing that waits."""
    visible = visible_runs(person)
    if not (agents_for(person, Right.VIEW_RUNS).exists() or visible.exists()):
        return {"no_rights": True}
    bare = Asked(
        view=asked.view, agent="", risk="", state="", reason="", parent="", q="", mine=False, claimed="", page=1
    )  # fmt: skip
    unfiltered = annotated(person, now).filter(views_of(person, bare, now)[asked.view]).count()
    narrowed = asked.agent or asked.risk or asked.state or asked.reason or asked.parent or asked.q
    narrowed = narrowed or asked.claimed
    if asked.mine and not narrowed and unfiltered:
        return {"others": {"number": unfiltered, "url": asked.url(mine="0", page=1)}}
    last = visible.filter(state__in=CLOSED).order_by("-since").first()
    idle: Context = {"running": visible.exclude(state__in=CLOSED).count()}
    if last:
        idle["last"] = {"title": last.goal, "url": reverse("run", args=[last.pk]), "at": last.since}
    return {"unfiltered_total": unfiltered, "idle": idle}


def agents_seen(person: User) -> list[str]:
    """The names of the agents some run of which this person may see."""
    whole = agents_for(person, Right.VIEW_RUNS).values("pk")
    seen = Agent.objects.filter(Q(pk__in=whole) | Q(pk__in=visible_runs(person).order_by().values("agent")))
    return sorted(set(seen.values_list("name", flat=True)))
