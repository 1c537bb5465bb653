"""What a form about several runs did with each, in words."""

from __future__ import annotations

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.actions.together import Came, Line

CAME: Final[dict[Came, Promise]] = {
    Came.DONE: gettext_lazy("done"),
    Came.SKIPPED: gettext_lazy("skipped"),
    Came.FAILED: gettext_lazy("failed"),
}
#: What was done with a run, or why not.
SAID: Final[dict[str, Promise]] = {
    "claimed": gettext_lazy("You work on it now."),
    "yours": gettext_lazy("You worked on it before; your claim lasts from now."),
    "held": gettext_lazy("%(name)s works on it. Open it to take it over."),
    "released": gettext_lazy("You do not work on it any more."),
    "not_yours": gettext_lazy("You were not shown as working on it."),
    "assigned": gettext_lazy("It is assigned to %(name)s."),
    "unassigned": gettext_lazy("It is assigned to nobody any more."),
    "same": gettext_lazy("It was assigned like that before."),
    "assignee_may_not": gettext_lazy("%(name)s may neither operate nor approve there."),
    "noted": gettext_lazy("Your note was kept."),
    "answered": gettext_lazy("The answer was stored as evidence: %(name)s. Nothing was concluded."),
    "unanswered": gettext_lazy("No answer: %(name)s. That it was asked is kept in the log."),
    "no_doubt": gettext_lazy("Nothing of it is unknown, so there is nothing to ask."),
    "no_tool": gettext_lazy("The agent’s version is not installed here, so nothing can be asked."),
    "out_of_time": gettext_lazy("The others took too long. Ask for this one again."),
    "changed": gettext_lazy("It was settled meanwhile: %(name)s."),
    "not_allowed": gettext_lazy("%(name)s"),
    "unreadable": gettext_lazy("Its log cannot be read by this version."),
    "refused": gettext_lazy("It was refused: %(name)s"),
    "not_seen": gettext_lazy("There is no such run that you can see."),
}


def said(line: Line) -> str:
    """The sentence of a line."""
    return str(SAID[line.code]) % {"name": line.name}


def summary(lines: list[Line]) -> str:
    """How many runs came how."""
    facts = {came.value: sum(line.came is came for line in lines) for came in Came}
    return _("%(done)d done, %(skipped)d skipped, %(failed)d failed.") % facts
