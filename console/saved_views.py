"""Saved views as pages show them: with how many runs each lists now, and what of a view is not there any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import structlog
from django.db import DatabaseError, transaction
from django.http import QueryDict
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from accounts.models import SavedView, User
from accounts.saved_views import views_changed_by, views_seen_by
from console.inbox import TABS, Asked, agents_seen, filtered, views_of
from console.templatetags.labels import RISK, RUN
from runs.access import visible_runs
from runs.pages import words
from runs.shapes import Shape, counts_of

log = structlog.get_logger(__name__)
Row = dict[str, Any]

#: What the filters are called, in the order in which a view is told.
FILTERS: Final[dict[str, Promise]] = {
    "view": pgettext_lazy("inbox", "List"),
    "agent": gettext_lazy("Agent"),
    "risk": gettext_lazy("Risk"),
    "state": gettext_lazy("State"),
    "reason": gettext_lazy("Reason"),
    "claimed": gettext_lazy("Claimed by or assigned to"),
    "parent": gettext_lazy("Started by the run"),
    "q": gettext_lazy("Text"),
}
#: Those whose values are looked for among runs; the others are chosen from a list.
_LOOKED_FOR: Final = ("agent", "parent", "q")
_CLAIMED: Final[dict[str, Promise]] = {"me": gettext_lazy("me"), "nobody": gettext_lazy("nobody")}


def listed(person: User, now: datetime, *, at: str = "") -> list[Row]:
    """What the navigation lists, in two queries whatever their number. `at` is the inbox's query on the page."""
    views = list(views_seen_by(person))
    found = counted(person, views, now) if views else {}
    here = next((view.pk for view in views if view.query == at), None)
    return [
        {
            "key": f"view-{view.pk}",
            "name": view.name,
            "url": reverse("inbox") + view.query,
            "count": found[view.pk],
            "current": view.pk == here,
            "group": view.tenant.name if view.tenant else "",
        }
        for view in views
    ]


def counted(person: User, views: Iterable[SavedView], now: datetime) -> dict[int, int | None]:
    """How many runs each lists for this person, in one query; None where they could not be counted."""
    shapes = {view.pk: _shape(view.query) for view in views}
    try:
        with transaction.atomic():
            return dict(zip(shapes, counts_of(list(shapes.values()), person, now), strict=True))
    except DatabaseError:
        log.exception("counts_failed")
        return dict.fromkeys(shapes)


@lru_cache(maxsize=500)
def _shape(query: str) -> Shape:
    """What the query lists, for whoever asks: its SQL is written once for each, not for every page."""
    asked = Asked.read(QueryDict(query[1:]))
    return Shape(
        lambda person, now: filtered(person, asked, now).filter(views_of(person, asked, now)[asked.view])
    )


def to_change(person: User) -> list[Row]:
    """What the settings list: the views that the person may put in order and delete."""
    views = list(views_changed_by(person))
    agents = agents_seen(person) if views else []
    holders = [view.tenant_id for view in views]
    return [
        {
            "id": view.pk,
            "name": view.name,
            "url": reverse("inbox") + view.query,
            "group": view.tenant.name if view.tenant else "",
            "told": told(Asked.read(QueryDict(view.query[1:]))),
            "gone": gone(person, QueryDict(view.query[1:]), agents),
            "first": place == 0 or holders[place - 1] != view.tenant_id,
            "last": place == len(views) - 1 or holders[place + 1] != view.tenant_id,
        }
        for place, view in enumerate(views)
    ]


def told(asked: Asked) -> str:
    """What a view asks for, as one line."""
    parts = [
        f"{label}: {_value(name, value)}" for name, label in FILTERS.items() if (value := _of(asked, name))
    ]
    return words.joined([*parts, *([_("I can act")] if asked.mine else [])])


def _of(asked: Asked, name: str) -> str:
    return str(getattr(asked, name, ""))


def _value(name: str, value: str) -> str:
    match name:
        case "view":
            return str(TABS.get(value, _("All runs")))
        case "risk":
            return str(RISK.get(value, value))
        case "state":
            return str(RUN[value].text)
        case "reason":
            return words.reason_alone(value)
        case "claimed":
            return str(_CLAIMED.get(value, value))
        case _:
            return value


def gone(person: User, sent: QueryDict, agents: Iterable[str]) -> list[str]:
    """What a query asks for and is not there any more, as sentences. `agents` are those that the person sees."""
    return list(_gone(person, sent, agents))


def _gone(person: User, sent: QueryDict, agents: Iterable[str]) -> Iterator[str]:
    asked = Asked.read(sent)
    for name, label in FILTERS.items():
        value = sent.get(name, "").strip()
        if value and name not in _LOOKED_FOR and _of(asked, name) != value:
            text = _("“%(value)s” is no value of the filter “%(filter)s” any more. It narrows nothing.")
            yield text % {"value": value, "filter": label}
    if asked.agent and asked.agent not in agents:
        text = _("There is no agent “%(value)s” any more whose runs you may see. So no run is listed.")
        yield text % {"value": asked.agent}
    if asked.parent and not visible_runs(person).filter(pk=asked.parent).exists():
        text = _("There is no run “%(value)s” that you may see. So none that it started is listed.")
        yield text % {"value": asked.parent}
