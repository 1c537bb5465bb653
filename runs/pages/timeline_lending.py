"""The timeline's sentences about grants and about checks that a person had made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.machine import events as e
from runs.pages import words


def _lent(event: e.AuthorityLent) -> str:
    lent = event.lent
    facts = {
        "was": words.grant_name(event.was),
        "now": words.grant_name(lent.grant),
        "name": lent.name,
        "scopes": words.joined(list(lent.scopes)),
        "until": words.moment(lent.expires_at),
        "budget": lent.budget or "",
    }
    said = _(
        "lent to the run anew: grant %(now)s of %(name)s in place of %(was)s, for %(scopes)s, until %(until)s."
    )
    if lent.budget is not None:
        limit = _("It may cost %(budget)s more.")
        said = f"{said} {limit}"
    note = _("Note: “%(note)s”") % {"note": event.note} if event.note else ""
    return " ".join(filter(None, (said % facts, note)))


def _made(event: e.ChecksMade) -> str:
    failed = [words.check(x) for x in event.checks if not x.passed and x.subject != "quorum"]
    number = len(event.checks)
    text = ngettext("had %(number)d check made.", "had %(number)d checks made.", number) % {"number": number}
    if not failed:
        return _("%(made)s All pass. Nothing was moved.") % {"made": text}
    facts = {"made": text, "failed": words.clauses(failed)}
    return _("%(made)s Not so any more: %(failed)s. Nothing was moved.") % facts


def _rebuilt(event: e.ProjectionRebuilt) -> str:
    facts = {"was": event.was, "now": event.now}
    return _("made the rows beside the log anew: version %(was)s had made them, this is %(now)s.") % facts


LENDING: dict[type[e.Event], Callable[[Any], str]] = {
    e.AuthorityLent: _lent,
    e.ChecksMade: _made,
    e.ProjectionRebuilt: _rebuilt,
}
