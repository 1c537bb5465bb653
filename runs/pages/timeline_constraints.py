"""The timeline's sentences about constraints that came, went or changed after the run had started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _

from runs.machine import events as e
from runs.pages import words


def _reasoned(said: str, reason: str) -> str:
    return _("%(sentence)s “%(words)s”") % {"sentence": said, "words": reason} if reason else said


def _accepted(event: e.ConstraintAccepted) -> str:
    facts = {"number": event.number, "text": words.inside(event.term.text), "seen": event.observed}
    if event.observed:
        return (
            _("bound the run to C-%(number)d, which the agent inferred from O-%(seen)d: “%(text)s”") % facts
        )
    return _reasoned(_("accepted another constraint, C-%(number)d: “%(text)s”") % facts, event.reason)


def _confirmed(event: e.ConstraintConfirmed) -> str:
    return _reasoned(
        _("confirmed C-%(number)d, which the agent had inferred.") % {"number": event.number}, event.note
    )


def _withdrawn(event: e.ConstraintWithdrawn) -> str:
    facts = {"number": event.number, "by": event.by.name if event.by else ""}
    if event.here:
        said = _("withdrew C-%(number)d for this run alone. The run does not go on.")
    elif event.by:
        said = _("was told that %(by)s withdrew C-%(number)d at its source. The run does not go on.")
    else:
        said = _("found that C-%(number)d does not stand at its source any more. The run does not go on.")
    return _reasoned(said % facts, event.why)


def _amended(event: e.ConstraintAmended) -> str:
    facts = {"number": event.number, "text": words.inside(event.term.text)}
    if event.by is None:
        said = _("found that the source of C-%(number)d says now: “%(text)s”") % facts
    else:
        facts |= {"by": event.by.name}
        said = _("was told that %(by)s amended C-%(number)d, which says now: “%(text)s”") % facts
    return _reasoned(said, event.why)


def _amendment_accepted(event: e.AmendmentAccepted) -> str:
    facts = {"number": event.number, "text": words.inside(event.term.text)}
    said = _("accepted for this run what C-%(number)d says now: “%(text)s”") % facts
    return _reasoned(said, event.reason)


CONSTRAINTS: dict[type[e.Event], Callable[[Any], str]] = {
    e.ConstraintAccepted: _accepted,
    e.ConstraintConfirmed: _confirmed,
    e.ConstraintWithdrawn: _withdrawn,
    e.ConstraintAmended: _amended,
    e.AmendmentAccepted: _amendment_accepted,
}
