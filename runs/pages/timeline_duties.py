"""The timeline's sentences about what a run owes, and about what a person had read once more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _

from runs.machine import events as e
from runs.pages import words


def _opened(event: e.ObligationOpened) -> str:
    facts = {
        "text": words.ended(event.text),
        "to": event.to,
        "owner": event.owner.name,
        "due": words.moment(event.due_at) if event.due_at else "",
    }
    said = _("wrote down what the run owes: %(text)s") % facts
    parts = [said]
    if event.to:
        parts.append(_("To %(to)s.") % facts)
    if event.due_at:
        parts.append(_("Due %(due)s.") % facts)
    parts.append(_("Owner: %(owner)s.") % facts)
    return " ".join(parts)


def _attested(event: e.ObligationAttested) -> str:
    facts = {
        "id": f"B-{event.obligation}",
        "how": words.ended(event.how),
        "reference": words.ended(event.reference),
    }
    return _("stated that %(id)s is done: %(how)s Proof: %(reference)s") % facts


def _handed_on(event: e.ObligationHandedOn) -> str:
    facts = {"id": f"B-{event.obligation}", "owner": event.owner.name, "note": event.note}
    if event.note:
        return _("handed %(id)s to %(owner)s: “%(note)s”") % facts
    return _("handed %(id)s to %(owner)s.") % facts


def _overdue(event: e.ObligationOverdue) -> str:
    facts = {"id": f"B-{event.obligation}", "due": words.moment(event.due_at)}
    return _("noted that %(id)s is overdue: it had to be done by %(due)s.") % facts


def _reread(event: e.ObservationReread) -> str:
    facts = {"resource": event.resource, "version": event.version, "tool": event.tool}
    return _("had %(resource)s read again with %(tool)s: version %(version)s. Nothing was moved.") % facts


DUTIES: dict[type[e.Event], Callable[[Any], str]] = {
    e.ObligationOpened: _opened,
    e.ObligationAttested: _attested,
    e.ObligationHandedOn: _handed_on,
    e.ObligationOverdue: _overdue,
    e.ObservationReread: _reread,
}
