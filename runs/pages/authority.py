"""What a run acts on, asked of the grant itself now, and the checks that a person had made last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from accounts.rights import Right
from runs import grants
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.revalidate import Granted
from runs.machine.transitions import allows
from runs.pages import who, words

Context = dict[str, Any]


def shown(state: s.RunState, log: Sequence[e.Recorded], person: User, holders: who.Holders) -> Context:
    """The `authority` of parts/authority.html."""
    over = state.state in s.TERMINAL
    why, granted = ("", None) if over else grants.still_lent(state)
    lost = words.LENDING.get(why, why)
    return {
        "lines": _lines(state, granted),
        "over": _("It does not carry the run any more: %(why)s. Nothing is sent on it.") % {"why": lost}
        if why
        else "",
        "end_url": _end_url(state, person, holders) if granted and not why else "",
        "checked": _checked(state, log),
        **(_check(state, person, holders) if allows(state.state, e.ChecksMade) else {}),
    }


def _lines(state: s.RunState, granted: Granted | None) -> list[str]:
    if not state.lendings:
        return [_("No grant was recorded for this run: it acts for who started it.")]
    lent = state.lendings[-1].lent
    facts = words.lending_facts(lent)
    said = [_("%(name)s lent to it %(scopes)s, until %(until)s (grant %(grant)s).") % facts]
    if lent.budget is not None:
        said.append(_budget(lent.budget, granted))
    if lent.bound:
        said.append(_("It ends with the session in which it was lent."))
    return said


def _budget(budget: str, granted: Granted | None) -> str:
    if granted is None or granted.left is None:
        return _("It may cost %(budget)s.") % {"budget": budget}
    facts = {"budget": budget, "left": granted.left}
    return _("It may cost %(budget)s, of which %(left)s is left.") % facts


def _end_url(state: s.RunState, person: User, holders: who.Holders) -> str:
    may = str(person.pk) == state.principal or person in holders[Right.OPERATE_RUNS]
    return reverse("grant-end", args=[state.grant]) if may else ""


def _check(state: s.RunState, person: User, holders: who.Holders) -> Context:
    """Where the checks are made now, or why this person cannot have them made."""
    people = holders[Right.OPERATE_RUNS]
    if person in people:
        return {"check_url": reverse("run-check", args=[state.identity.run])}
    return {"why_not": who.why_not(person, Right.OPERATE_RUNS, people)}


def _checked(state: s.RunState, log: Sequence[e.Recorded]) -> Context | None:
    """The newest report: when, by whom, what failed, and every check."""
    made = state.checked
    if made is None:
        return None
    by = next((r.actor.name for r in log if r.seq == made.seq), "")
    failed = [words.check(x) for x in made.checks if not x.passed and x.subject != "quorum"]
    number = ngettext("%(number)d check", "%(number)d checks", len(made.checks))
    facts = {"by": by, "checks": number % {"number": len(made.checks)}}
    passed = _("%(by)s had %(checks)s made. All pass. Nothing was moved.") % facts
    return {
        "at": made.at,
        "seq": made.seq,
        "text": _("%(by)s had %(checks)s made. These fail, and nothing was moved:") % facts
        if failed
        else passed,
        "failed": failed,
        "passed": [words.check(x) for x in made.checks if x.passed],
    }
