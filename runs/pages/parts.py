"""Constraints as rows."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from runs.machine import state as s
from runs.pages import constraint_lines, words
from runs.pages.who import Holders

Row = dict[str, Any]


def constraints(state: s.RunState, person: User, holders: Holders) -> list[Row]:
    """The `constraints` of parts/constraints.html."""
    events = reverse("run-events", args=[state.identity.run])
    now = constraint_lines.at_source(state)
    return [
        {
            "id": f"C-{c.number}",
            "text": c.term.text,
            "name": c.term.name,
            "predicate": c.term.predicate,
            **_inferred(state, c),
            "kind": str(words.SOURCES.get(c.term.source_kind, c.term.source_kind)),
            "by": f"{c.term.source_ref} {c.term.source_version}",
            "at": c.at,
            "enforced": _("checked at its source before the run goes on and before each send"),
            "event_url": f"{events}?from={c.seq}#event-{c.seq}",
            **constraint_lines.doing(state, c, now, holders, person),
        }
        for c in state.constraints
    ]


def _inferred(state: s.RunState, constraint: s.Constraint) -> Row:
    """What is said of one that the agent inferred: from what, and whether a person stands for it."""
    if constraint.term.source_kind != s.INFERRED:
        return {}
    run, said = state.identity.run, constraint.confirmed
    if said:
        facts = {"name": said.by.name, "at": words.moment(said.at)}
        return {
            "inferred": _("Inferred by the agent. Confirmed by %(name)s, %(at)s.") % facts,
            **_read_in(run, constraint),
        }
    open_ = state.state not in s.TERMINAL and not constraint.withdrawn
    return {
        "inferred": _("Inferred by the agent. Not confirmed by a person."),
        "confirm_url": reverse("run-constraint-confirm", args=[run, constraint.number]) if open_ else "",
        **_read_in(run, constraint),
    }


def _read_in(run: str, constraint: s.Constraint) -> Row:
    number = constraint.observed
    if not number:
        return {}
    return {"read_in": f"O-{number}", "read_in_url": f"{reverse('run', args=[run])}#observation-O-{number}"}
