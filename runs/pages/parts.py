"""Constraints as rows."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from runs.machine import state as s
from runs.pages import words

Row = dict[str, Any]


def constraints(state: s.RunState) -> list[Row]:
    """The `constraints` of parts/constraints.html."""
    events = reverse("run-events", args=[state.identity.run])
    withdrawn = {r.subject: r.evidence for r in state.reasons if r.code == "constraint_withdrawn"}
    return [
        {
            "id": f"C-{c.number}",
            "text": c.term.text,
            "name": c.term.name,
            "predicate": c.term.predicate,
            "kind": str(words.SOURCES.get(c.term.source_kind, c.term.source_kind)),
            "by": f"{c.term.source_ref} {c.term.source_version}",
            "at": c.at,
            "enforced": _("checked at its source before the run goes on and before each send"),
            "state_note": withdrawn.get(f"C-{c.number}", ""),
            "event_url": f"{events}?from={c.seq}#event-{c.seq}",
        }
        for c in state.constraints
    ]
