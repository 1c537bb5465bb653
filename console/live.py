"""What the poll of the inbox hears: how many runs changed since the list was loaded, and the counts of the tabs."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from accounts.guards import On, guarded
from console.inbox import Asked, filtered, tabs, views_of
from console.saved_views import listed
from runs.clock import database_now
from runs.queries import counted_for
from runs.views.frame import Context, console_page, nav_counts, person_of, show


@console_page
@guarded(On.PERSON)
@require_safe
def inbox_notices(request: HttpRequest) -> HttpResponse:
    """News since `?since=`; 304 where nothing is new since the last answer."""
    person, now = person_of(request), database_now()
    asked = Asked.of(request, mine=False)
    runs = filtered(person, asked, now)
    counted = tabs(runs, views_of(person, asked, now), asked)
    changed = runs.filter(at__gt=_since(request, now)).count()
    nav, saved = counted_for(person, now), listed(person, now)
    numbers = (changed, nav.waiting, nav.mine, *(tab["count"] for tab in (*counted, *saved)))
    tag = '"' + "-".join(map(str, numbers)) + '"'
    if request.headers.get("If-None-Match") == tag:
        return HttpResponse(status=304, headers={"ETag": tag})
    context: Context = {
        "now": now, "checked_at": now, **nav_counts(nav),
        "counts": [*(counted if asked.view != "any" else []), *saved], "news": _news(changed, asked),
    }  # fmt: skip
    response = show(request, "parts/notices.html", context)
    response["ETag"] = tag
    return response


def _since(request: HttpRequest, now: datetime) -> datetime:
    try:
        moment = parse_datetime(request.GET.get("since", ""))
    except ValueError:
        moment = None
    return moment if moment and moment.tzinfo else now


def _news(changed: int, asked: Asked) -> dict[str, str] | None:
    if not changed:
        return None
    text = ngettext(
        "%(number)d run changed since you loaded this list.",
        "%(number)d runs changed since you loaded this list.",
        changed,
    )
    return {"text": text % {"number": changed}, "url": reverse("inbox") + asked.url()}
