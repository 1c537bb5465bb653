"""Lending anew to a run that lost what it acted on: what was lent, why that does not carry it, what is lent now."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.rights import Right
from runs import agents, grants
from runs.durations import Durations
from runs.machine import decide
from runs.machine import state as s
from runs.machine.transitions import Decision
from runs.models import Run
from runs.pages import words
from runs.pages.run_page import Reader, heading
from runs.pages.stopping import may, subject

Context = dict[str, Any]

REST, UNLIMITED = "rest", "unlimited"


def link(run: Run, state: s.RunState) -> Context | None:
    """The decision as it stands on other pages; None where lending anew is no way on."""
    if not decide.may_lend(state):
        return None
    name, does = words.DECISIONS[Decision.LEND.value]
    return {"title": name, "text": does, "url": reverse("run-lend", args=[run.pk])}


def scopes(run: Run, state: s.RunState) -> tuple[str, ...]:
    """What is lent: all that the run's agent does; as before, where this console does not have its code."""
    code = agents.registered().get((run.agent.name, run.agent_version))
    if code is not None:
        return grants.scopes_of(code)
    return state.lendings[-1].lent.scopes if state.lendings else ()


def rest(state: s.RunState) -> Decimal:
    """What the rest of the plan costs."""
    return sum(map(state.cost, state.remaining), Decimal())


def lend(run: Run, state: s.RunState, reader: Reader) -> Context:
    """All of runs/decide.html for lending anew."""
    possible = decide.may_lend(state)
    return {
        "run": heading(run, state),
        "title": _("Lend to this run anew?"),
        "why": [*map(words.reason_with_evidence, state.reasons), *_lent(state), *_would(run, state, reader)],
        "choices": _choices(state) if possible else [],
        "nothing": "" if possible else _("This run did not stop for want of authority or money."),
        "hint": _("Required, at least 10 characters. It is shown in the timeline and in the audit log."),
        "subject": subject(state),
        "commit": _("Lend anew"),
        **may("may_decide", Right.START_RUNS, reader),
        "values": {},
        "errors": [],
    }


def _lent(state: s.RunState) -> list[str]:
    """What the run acted on so far."""
    if not state.lendings:
        return [_("No grant was recorded for this run.")]
    lent = state.lendings[-1].lent
    facts = words.lending_facts(lent)
    return [_("It acted on grant %(grant)s of %(name)s, for %(scopes)s, until %(until)s.") % facts]


def _would(run: Run, state: s.RunState, reader: Reader) -> list[str]:
    """What would be lent, by whom, for how long, and what follows."""
    durations: Durations = settings.HANDOFF_DURATIONS
    facts = {
        "name": reader.person.shown_name,
        "scopes": words.joined(list(scopes(run, state))),
        "until": words.moment(reader.now + durations.grant_stands),
    }
    return [
        _("%(name)s lends now: %(scopes)s, until %(until)s, and can end that at any time.") % facts,
        _("A person has to approve the rest of the plan again, although it is the same plan."),
    ]


def _choices(state: s.RunState) -> list[Context]:
    facts = {"cost": str(rest(state))}
    found = [
        {
            "value": REST,
            "title": _("For the rest of the plan: %(cost)s") % facts,
            "text": _("No more than the rest of the present plan costs."),
        }
    ]
    if state.identity.budget is None:
        unlimited = _("Each plan is still approved by a person or by the policy.")
        found.append({"value": UNLIMITED, "title": _("Without a limit"), "text": unlimited})
    return found
