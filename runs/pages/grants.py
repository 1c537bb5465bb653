"""The grants of a person and of the agents that they operate, and what the end of one does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from accounts.rights import Denial
from runs import grants
from runs.access import visible_runs
from runs.models import Grant
from runs.pages import words

Context = dict[str, Any]
#: Runs and grants that a page names; the rest is counted.
NAMED = 50


def listed(person: User, now: datetime) -> Context:
    """All of runs/grants.html but the frame."""
    own, others = grants.grants_of(person), grants.operated(person)
    return {
        "lists": [
            _list(own, now, _("What you lent"), _("You lent nothing.")),
            _list(
                others,
                now,
                _("What others lent to agents that you operate"),
                _("Nothing you could look after."),
            ),
        ]
    }


def _list(found: Any, now: datetime, title: str, empty: str) -> Context:
    rows: Sequence[Grant] = found[: NAMED + 1]
    return {
        "title": title,
        "empty": empty,
        "rows": [_row(grant, now) for grant in rows[:NAMED]],
        "more": len(rows) > NAMED,
    }


def _row(grant: Grant, now: datetime) -> Context:
    return {
        "name": words.grant_name(str(grant.pk)),
        "url": reverse("grant-end", args=[grant.pk]),
        "agent": grant.agent.title,
        "organisation": grant.tenant.name,
        "principal": grant.principal.shown_name,
        "scopes": words.joined(list(grant.scopes)),
        "until": grant.expires_at,
        "money": _money(grant),
        "over": _over(grant, now),
    }


def _money(grant: Grant) -> str:
    if grant.budget is None:
        return _("no limit")
    left = grant.budget - grant.balance.used
    return _("%(budget)s, of which %(left)s is left") % {"budget": grant.budget, "left": left}


def _over(grant: Grant, now: datetime) -> str:
    """Why the grant is over; empty where it is not."""
    if grant.ended_at is not None:
        why = "ended" if grant.by_id else grant.why
        return str(words.LENDING.get(why, why))
    return str(words.LENDING["expired"]) if grant.expires_at <= now else ""


def ending(
    grant: Grant, impact: grants.Impact, person: User, now: datetime, denial: Denial | None
) -> Context:
    """All of runs/end_grant.html but the frame and the form's values."""
    return {
        "list_url": reverse("grants"),
        "grant": _row(grant, now),
        "ended": _ended(grant),
        "impact": _impact(impact),
        "runs": _runs(impact, person),
        "digest": impact.digest,
        "why_not": denial.sentence if denial else "",
    }


def _ended(grant: Grant) -> str:
    if grant.ended_at is None:
        return ""
    facts = {"at": words.moment(grant.ended_at), "why": grant.why}
    if grant.by is None:
        return _("It ended by itself at %(at)s.") % facts
    facts["name"] = grant.by.shown_name
    return _("%(name)s ended it at %(at)s: “%(why)s”") % facts


def _impact(impact: grants.Impact) -> list[str]:
    runs, requests = len(impact.runs), len(impact.requests)
    stops = ngettext(
        "%(number)d open run acts on it. It sends nothing more until somebody lends to it anew.",
        "%(number)d open runs act on it. They send nothing more until somebody lends to them anew.",
        runs,
    )
    loses = ngettext(
        "%(number)d approval or request counts no more: people are asked again, although the plan is the same.",
        "%(number)d approvals or requests count no more: people are asked again, although the plans are the same.",
        requests,
    )
    return [
        stops % {"number": runs} if runs else _("No open run acts on it."),
        *([loses % {"number": requests}] if requests else []),
        _("What was sent on it stands. What is in flight is settled as always."),
        _("An ended grant cannot be opened again; another can be lent."),
    ]


def _runs(impact: grants.Impact, person: User) -> Context:
    """Those of the runs that this person may see, and how many there are beside."""
    ids = [run.pk for run in impact.runs]
    seen = list(visible_runs(person).filter(pk__in=ids).order_by("pk")[:NAMED])
    rows = [
        {
            "id": run.pk,
            "title": run.goal,
            "url": reverse("run", args=[run.pk]),
            "state": words.shown_state(run.state, list(run.reasons)),
            "since": run.since,
        }
        for run in seen
    ]
    return {"rows": rows, "more": len(ids) - len(rows)}
