"""What whoever starts runs lends to them: up to how much, until when, and whether only while they stay signed in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts.models import User
from console.own_pages import joined, lending_facts, moment, typed
from console.templatetags.durations import span
from examples.refunds.agent import REFUNDS
from examples.refunds.csvfile import amount_of
from runs import grants
from runs.actions import lend_all
from runs.models import Agent, Grant

Context = dict[str, Any]
#: What a grant may be lent for, where it is shorter than the longest that the profile allows.
OFFERED = (timedelta(hours=1), timedelta(hours=8), timedelta(days=1), timedelta(days=7))
FIELDS = ("budget", "lasts", "bound")
SESSION, FREE = "session", "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is lent beside the scopes. `budget` None: no limit; `session_key` "": bound to no session."""

    budget: Decimal | None
    lasts: timedelta
    session_key: str

    def lend(self, *, agent: Agent, principal: User, now: datetime) -> Grant:
        """The grant of these terms."""
        return lend_all(
            agent=agent, version=REFUNDS.version, principal=principal, budget=self.budget,
            session_key=self.session_key, expires_at=now + self.lasts,
        )  # fmt: skip


def terms_of(request: HttpRequest) -> tuple[Terms | None, list[dict[str, str]]]:
    """The terms that the form names, or what is wrong with them. What it does not name is as in a form untouched."""
    sent = values(request)
    budget = amount_of(sent["budget"])
    lasts = {str(_hours(x)): x for x in durations()}.get(sent["lasts"])
    errors = []
    if sent["budget"] and budget is None:
        errors.append({"field": "budget", "message": _("Enter an amount such as 1000.00, or nothing.")})
    if lasts is None:
        errors.append({"field": "lasts", "message": _("Choose one of the durations.")})
    if sent["bound"] not in (SESSION, FREE):
        errors.append({"field": "bound", "message": _("Choose whether it ends with your session.")})
    if errors or lasts is None:
        return None, errors
    session = request.session.session_key or "" if sent["bound"] == SESSION else ""
    return Terms(budget=budget, lasts=lasts, session_key=session), []


def durations() -> list[timedelta]:
    """For how long one can lend, the longest last."""
    longest: timedelta = settings.HANDOFF_DURATIONS.grant_stands
    return [*(x for x in OFFERED if x < longest), longest]


def values(request: HttpRequest) -> dict[str, str]:
    """The fields as they were sent, else as an untouched form has them."""
    untouched = {"budget": "", "lasts": str(_hours(durations()[-1])), "bound": FREE}
    return {name: typed(request, name) if name in request.POST else untouched[name] for name in FIELDS}


def shown(now: datetime) -> Context:
    """The `lending` of runs/start.html."""
    return {
        "scopes": joined(list(grants.scopes_of(REFUNDS))),
        "durations": [
            {"value": str(_hours(x)), "label": _("%(span)s, until %(until)s") % _until(x, now)}
            for x in durations()
        ],
        "bounds": [
            {
                "value": FREE,
                "title": _("Until then, or until I end it."),
                "text": _("The runs go on when you have signed out."),
            },
            {
                "value": SESSION,
                "title": _("Only while I stay signed in here."),
                "text": _("When this session ends, nothing more is sent until somebody lends anew."),
            },
        ],
    }


def _until(lasts: timedelta, now: datetime) -> dict[str, str]:
    return {"span": span(lasts), "until": moment(now + lasts)}


def _hours(lasts: timedelta) -> int:
    return int(lasts / timedelta(hours=1))


def sentence(grant: Grant) -> str:
    """What was lent, once runs were started on it."""
    facts = {**lending_facts(grants.as_lent(grant)), "budget": str(grant.budget)}
    said = _("You lent them %(scopes)s, until %(until)s.") % facts
    if grant.budget is not None:
        said += " " + _("All of them together may cost %(budget)s.") % facts
    if grant.session_key:
        said += " " + _("It ends with this session.")
    return said
