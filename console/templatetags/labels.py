"""What each state is called on a page, and how loud it is. One table, so that no page shows an enum."""

from __future__ import annotations

from typing import Final, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class Label(NamedTuple):
    """The words, tone (a CSS class `tone-…`) and glyph of one state; loud only where a person must act."""

    text: str | Promise
    tone: str
    glyph: str
    loud: bool = False


RUN: Final[dict[str, Label]] = {
    "planning": Label(_("Planning"), "running", "running"),
    "waiting_approval": Label(_("Waiting for approval"), "waiting", "hourglass", loud=True),
    "approved": Label(_("Approved, not yet executing"), "running", "ring-dot"),
    "executing": Label(_("Executing"), "running", "running"),
    "unknown": Label(_("Unknown outcome"), "unknown", "unknown", loud=True),
    "waiting": Label(_("Waiting as planned"), "neutral", "clock"),
    "needs_human": Label(_("Needs a person"), "needs", "triangle", loud=True),
    "cancelling": Label(_("Cancelling"), "running", "uturn"),
    "compensating": Label(_("Undoing what was done"), "running", "uturn"),
    "succeeded": Label(_("Completed"), "confirmed", "check"),
    "failed": Label(_("Failed"), "failed", "octagon", loud=True),
    "cancelled": Label(_("Cancelled"), "neutral", "ring-bar"),
    "restarted": Label(_("Restarted as a new run"), "neutral", "again"),
}

EFFECT: Final[dict[str, Label]] = {
    "planned": Label(_("Not sent"), "neutral", "ring"),
    "in_flight": Label(_("In flight, no receipt yet"), "running", "running"),
    "unknown": Label(_("Unknown outcome"), "unknown", "unknown", loud=True),
    "confirmed": Label(_("Confirmed"), "confirmed", "check"),
    "not_executed": Label(_("Did not happen"), "neutral", "ring-slash"),
    "compensated": Label(_("Undone"), "neutral", "uturn"),
}

APPROVAL: Final[dict[str, Label]] = {
    "pending": Label(_("Waiting for approval"), "waiting", "hourglass", loud=True),
    "valid": Label(pgettext_lazy("approval", "Valid"), "confirmed", "check"),
    "consumed": Label(pgettext_lazy("approval", "Used"), "neutral", "ring-dot"),
    "voided": Label(pgettext_lazy("approval", "No longer valid"), "neutral", "ring-slash"),
    "expired": Label(pgettext_lazy("approval", "Expired"), "neutral", "clock-bar"),
    "rejected": Label(pgettext_lazy("approval", "Rejected"), "neutral", "ring-bar"),
    "changes_asked": Label(pgettext_lazy("approval", "Changes asked for"), "neutral", "again"),
    "taken_back": Label(pgettext_lazy("approval", "Taken back"), "neutral", "uturn"),
}

CHECK: Final[dict[str, Label]] = {
    "pass": Label(pgettext_lazy("check", "passes"), "confirmed", "check"),
    "fail": Label(pgettext_lazy("check", "fails"), "needs", "triangle", loud=True),
    "noted": Label(pgettext_lazy("check", "noted, does not decide"), "neutral", "ring-dot"),
    "not_checked": Label(pgettext_lazy("check", "not checked"), "neutral", "ring"),
}

MARK: Final[dict[str, Label]] = {
    "ok": Label(pgettext_lazy("handoff", "In order:"), "confirmed", "check"),
    "attention": Label(pgettext_lazy("handoff", "Needs attention:"), "needs", "triangle"),
    "unknown": Label(pgettext_lazy("handoff", "Unknown:"), "unknown", "unknown"),
    "next": Label(pgettext_lazy("handoff", "Next:"), "accent", "arrow"),
    "none": Label(pgettext_lazy("handoff", "Nothing here:"), "neutral", "ring"),
}

ACTOR: Final[dict[str, Label]] = {
    "person": Label(pgettext_lazy("actor", "person"), "neutral", "person"),
    "agent": Label(pgettext_lazy("actor", "agent"), "neutral", "agent"),
    "policy": Label(pgettext_lazy("actor", "policy"), "neutral", "policy"),
    "external": Label(pgettext_lazy("actor", "external system"), "neutral", "external"),
    "console": Label(pgettext_lazy("actor", "console"), "neutral", "console"),
    "system": Label(pgettext_lazy("actor", "console"), "neutral", "console"),
    "worker": Label(pgettext_lazy("actor", "worker"), "neutral", "console"),
}

KINDS: Final[dict[str, dict[str, Label]]] = {
    "run": RUN,
    "effect": EFFECT,
    "approval": APPROVAL,
    "check": CHECK,
    "mark": MARK,
    "actor": ACTOR,
}

RISK: Final[dict[str, str | Promise]] = {
    "critical": _("Critical"),
    "high": _("High"),
    "medium": _("Medium"),
    "low": _("Low"),
}

CHANGE: Final[dict[str, tuple[str, str | Promise]]] = {
    "same": ("", pgettext_lazy("plan step", "same")),
    "changed": ("±", pgettext_lazy("plan step", "changed")),
    "added": ("+", pgettext_lazy("plan step", "added")),
    "removed": ("-", pgettext_lazy("plan step", "removed")),
}

HANDOFF: Final[dict[str, str | Promise]] = {
    "goal": _("Goal"),
    "constraints": _("Constraints"),
    "obligations": _("Obligations"),
    "last_confirmed": _("Last confirmed"),
    "pending": _("Pending or unknown"),
    "observations": _("Observations"),
    "next": _("Next"),
}


def label(state: str, kind: str) -> Label:
    """The label of a state; one that the table lacks is shown by its own name, quietly, so that no page breaks."""
    return KINDS[kind].get(state) or Label(state.replace("_", " "), "neutral", "ring")
