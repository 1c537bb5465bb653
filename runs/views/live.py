"""What the poll of a run's page hears: notices only, and nothing at all while nothing changed."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.guards import On, guarded
from accounts.models import User
from runs import seeing
from runs.access import run_for
from runs.clock import database_now
from runs.ledger import LogUnreadable, log
from runs.models import Run
from runs.pages import timeline
from runs.queries import counted_for
from runs.views.frame import Context, console_page, nav_counts, number, person_of, show


@console_page
@guarded(On.RUN)
@require_safe
def run_notices(request: HttpRequest, run_id: str) -> HttpResponse:
    """News since `?seq=`, with the count of the inbox; 304 where the page has all of it."""
    person = person_of(request)
    run = run_for(person, run_id)
    now = database_now()
    saw = number(request.GET.get("seq")) or 0
    found = counted_for(person, now)
    tag = f'"{run.seq}-{found.waiting}-{found.mine}"'
    if request.headers.get("If-None-Match") == tag:
        return HttpResponse(status=304, headers={"ETag": tag})
    context: Context = {"now": now, "checked_at": now, **nav_counts(found), "run": {"seq": run.seq}}
    if run.seq > saw:
        context["news"] = {
            "text": _news(person, run),
            "url": f"{reverse('run', args=[run_id])}?saw={saw}#timeline",
        }
    response = show(request, "parts/notices.html", context)
    response["ETag"] = tag
    return response


def _news(person: User, run: Run) -> str:
    """The newest event as one line."""
    facts = {"seq": run.seq}
    try:
        last = list(log(run.pk))[-1]
        hidden = seeing.hidden_from(person, run)
        last = hidden.event(last) if hidden else last
    except LogUnreadable:
        return _("Version %(seq)d is available.") % facts
    told = f"{last.actor.name} {timeline.sentence(last.event)}"
    return _("Version %(seq)d is available: %(told)s") % {**facts, "told": told}
