"""What the page about health says of each number: what it counts, where its list is, and when it needs attention."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.models import User
from accounts.rights import Right
from approvals.models import RequestState
from console.constraints import address
from console.durations import durations
from console.health import MISSED_SWEEPS
from console.templatetags.labels import RUN
from runs import constrained, doubted, health
from runs.access import agents_for, statements_for
from runs.agents import configurations, registered
from runs.doubted import Doubts, InDoubt
from runs.health import Counted
from runs.models import ConfigurationKept
from runs.pages import words
from runs.recovery import live_serves
from runs.sources import held

Line = dict[str, Any]
#: How far back it is counted what became of requests.
LATELY: Final = timedelta(days=28)
_MINUTES, _HOUR, _DAY = timedelta(minutes=15), timedelta(hours=1), timedelta(hours=24)
#: How long ago effects in doubt were sent: from, to, and what a line says of those between.
_BANDS: Final[tuple[tuple[timedelta, timedelta, Promise], ...]] = (
    (timedelta.min, _MINUTES, gettext_lazy("Sent in the last 15 min")),
    (_MINUTES, _HOUR, gettext_lazy("Sent between 15 min and 1 h ago")),
    (_HOUR, _DAY, gettext_lazy("Sent between 1 h and 24 h ago")),
    (_DAY, timedelta.max, gettext_lazy("Sent more than 24 h ago")),
)


def lag() -> timedelta:
    """What may stay undone for so long while all is well; from then on it needs attention."""
    return durations().sweep * MISSED_SWEEPS


def work(person: User, now: datetime) -> list[Line]:
    """What is due for a worker, what one holds, and what one left behind."""
    found = health.work(person, now, live_serves())
    late = now - lag()
    return [
        _line(_("Due, and no worker has taken it yet"), found["due"], late=late),
        _line(_("Of these, no live worker serves the version"), found["unserved"], late=now),
        _line(_("Left by a worker whose lease ended"), found["left"], late=late),
        _line(_("Held by a worker now"), found["held"]),
    ]  # fmt: skip


def states(person: User, now: datetime) -> list[Line]:
    """How many runs are in each state that has any."""
    found = health.by_state(person)
    return [
        _line(label.text, found[state], url=_inbox(view="any", state=state))
        for state, label in RUN.items()
        if state in found
    ]


def reasons(person: User, now: datetime) -> list[Line]:
    """For which reasons runs need a person, the most frequent first."""
    found = sorted(health.by_reason(person).items(), key=lambda item: (-item[1].number, item[0]))
    return [
        _line(words.reason_alone(code), counted, url=_inbox(view="any", reason=code))
        for code, counted in found
    ]


def doubts(person: User, now: datetime) -> list[Line]:
    """Effects whose outcome nobody knows, by how long ago they were sent; and those that nobody asked about in time."""
    found = doubted.doubts(person, now)
    hard = [one for one in found.looked_at if not one.reversible]
    late = sorted((one for one in found.looked_at if one.unasked(now)), key=_settled)
    return [
        {**_line(_("Unknown outcome"), _effects(found.looked_at)), "number": found.number},
        {**_line(_("Of these, cannot be undone"), _effects(hard)), "number": found.irreversible},
        *_banded(found, now),
        _line(
            _("The other system’s answer counts by now, and it was not asked since"),
            Counted(number=len(late), since=_settled(late[0]), run=late[0].run) if late else Counted(),
            late=now - lag(),
        ),
    ]


def _banded(found: Doubts, now: datetime) -> list[Line]:
    note = ""
    if found.number > len(found.looked_at):
        note = _("Of the %(number)d that were sent first.") % {"number": len(found.looked_at)}
    ages = [(now - one.sent_at, one) for one in found.looked_at]
    return [
        {**_line(text, _effects([one for age, one in ages if low < age <= high])), "note": note}
        for low, high, text in _BANDS
        if found.number
    ]


def _effects(some: Sequence[InDoubt]) -> Counted:
    """They come with the longest sent first."""
    return Counted(number=len(some), since=some[0].sent_at, run=some[0].run) if some else Counted()


def _settled(one: InDoubt) -> datetime:
    assert one.settled_at is not None
    return one.settled_at


def approvals(person: User, now: datetime) -> list[Line]:
    """Who waits for a decision, whose time ends soon or has ended."""
    found = health.approvals(person, now)
    view = _inbox(view="waiting_approval")
    return [
        _line(_("Runs that wait for a decision"), found["waiting"]),
        _line(_("Of these, the request ends soon"), found["soon"], late=now + _DAY),
        _line(_("The request has ended and that is not recorded yet"), found["recorded"], late=now - lag()),
        _line(_("Nobody is asked at the moment"), found["unasked"], late=now - lag()),
        _line(
            _("Runs that wait for approval, all together"),
            _sum(found["waiting"], found["recorded"], found["unasked"]),
            url=view,
        ),
    ]


def ended(person: User, now: datetime) -> list[Line]:
    """How requests for approval ended lately; what ended without an answer stands apart."""
    found = health.requests_ended(person, now - LATELY)
    unanswered = sum(n for state, answered, n in found if state == RequestState.EXPIRED and not answered)
    total = {
        label: sum(
            n
            for state, answered, n in found
            if state == value and (answered or value != RequestState.EXPIRED)
        )
        for value, label in RequestState.choices
    }
    lines = [_line(label, Counted(number=n)) for label, n in total.items() if n]
    return [*lines, _line(_("Expired without an answer"), Counted(number=unanswered))]


def _sum(*some: Counted) -> Counted:
    return Counted(number=sum(one.number for one in some))


def obligations(person: User, now: datetime) -> list[Line]:
    """What runs have promised and not done."""
    found = health.obligations(person, now)
    return [
        _line(_("Open obligations"), found["open"]),
        _line(_("Of these, overdue"), found["overdue"], late=now),
    ]


def documents(person: User, now: datetime) -> list[Line]:
    """The documents that constraints of the person's agents come from, and those that cannot be heard."""
    names = {agent.name for agent in agents_for(person, Right.VIEW_RUNS)}
    named = {
        x.ref
        for (name, _version), code in registered().items()
        if name in names
        for x in configurations(code)
    }
    rows = list(ConfigurationKept.objects.filter(ref__in=named).order_by("ref"))
    silent = [row for row in rows if row.failure]
    over = [row for row in rows if row.good_until is None or row.good_until <= now]
    return [
        _line(_("Documents that constraints come from"), Counted(number=len(named))),
        _unheard(_("Of these, gave no answer when they were asked last"), silent),
        _unheard(_("Of these, what was heard counts no more: no run that accepted any of it goes on"), over),
    ]


def _unheard(text: str, rows: list[ConfigurationKept]) -> Line:
    heard = min((row.asked_at for row in rows if row.asked_at), default=None)
    line = _line(text, Counted(number=len(rows), since=heard))
    return {**line, "attention": bool(rows), "note": words.clauses(row.ref for row in rows)}


def constraints(person: User, now: datetime) -> list[Line]:
    """Changed and withdrawn constraints of which not every run has been told: for each, how many are left."""
    known = statements_for(person)
    latest = known.filter(pk__in=held.latest_of(known).values("pk"), version__gt=1, told__isnull=True)
    rows = list(latest.order_by("at", "pk"))
    told = constrained.progress(rows) if rows else {}
    return [_telling(row, told.get(row.pk), now) for row in rows]


def _telling(row: Any, progress: constrained.Progress | None, now: datetime) -> Line:
    left = progress.runs - progress.told if progress else 0
    text = _("“%(name)s” was withdrawn") if row.withdrawn else _("“%(name)s” was stated otherwise")
    return {
        **_line(text % {"name": row.name}, Counted(number=left, since=row.at), late=now - lag()),
        "url": address(row.ref),
        "note": ngettext("run is still to be told", "runs are still to be told", left),
    }


def _line(text: object, counted: Counted, *, url: str = "", late: datetime | None = None) -> Line:
    """`late`: it needs attention where it has waited since before then."""
    return {
        "text": text,
        "number": counted.number,
        "url": url,
        "since": counted.since,
        "run": counted.run,
        "run_url": reverse("run", args=[counted.run]) if counted.run else "",
        "attention": bool(late and counted.number and counted.since and counted.since <= late),
    }


def _inbox(**asked: str) -> str:
    return f"{reverse('inbox')}?{urlencode(asked)}"
