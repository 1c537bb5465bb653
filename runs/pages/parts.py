"""Observations, constraints and obligations as rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from runs.machine import state as s
from runs.pages import stated, words

Row = dict[str, Any]
AGEING = 70  # percent of the half-life from which an observation is called ageing


def observations(state: s.RunState, now: datetime) -> list[Row]:
    """The `observations` of parts/observations.html: too old first."""
    rows = [_observation(state, o, now) for o in state.observations.values()]
    return sorted(rows, key=lambda r: (-r["percent"], r["id"]))


def _observation(state: s.RunState, seen: s.Observation, now: datetime) -> Row:
    over = state.state in s.TERMINAL
    until = state.since if over and state.since else now
    age = max(until - seen.observed_at, timedelta())
    percent = min(100, int(100 * age / seen.half_life)) if seen.half_life else 100
    return {
        "id": f"O-{seen.number}",
        "tool": seen.tool,
        "arguments": seen.arguments,
        "value": seen.value,
        "resource": seen.resource,
        "version": seen.version,
        "at": seen.observed_at,
        "age": age,
        "limit": seen.half_life,
        "percent": percent,
        "freshness": "over"
        if over
        else "old"
        if percent >= 100
        else "ageing"
        if percent >= AGEING
        else "fresh",
        "used_by": _used_by(state, seen),
    }


def _used_by(state: s.RunState, seen: s.Observation) -> str:
    steps = state.plan.plan.steps if state.plan else ()
    key = (seen.tool, seen.arguments)
    users = [str(n) for n, x in enumerate(steps, 1) if key in {(r.tool, r.arguments) for r in x.rests_on}]
    return _("used by step %(steps)s") % {"steps": words.joined(users)} if users else ""


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


def obligations(state: s.RunState, times: Mapping[int, datetime]) -> list[Row]:
    """The `obligations` of parts/obligations.html: open first. `times` tells when an event was, by its seq."""
    said = frozenset(x.receipt.seq for x in state.effects.values() if x.receipt and stated.by(x))
    kept = sorted(state.obligations, key=lambda o: (not o.open, o.number))
    return [
        {
            "id": f"B-{o.number}",
            "text": o.text,
            "due_at": o.due_at,
            "opened_at": o.opened_at,
            "discharged_at": times.get(o.discharged_seq or 0),
            "state_note": _obligation_note(o, said),
        }
        for o in kept
    ]


def _obligation_note(owed: s.Obligation, said: frozenset[int]) -> str:
    if owed.discharged_seq in said:
        return _("discharged by what people stated, event %(seq)d") % {"seq": owed.discharged_seq}
    if not owed.open:
        return _("discharged by the receipt in event %(seq)d") % {"seq": owed.discharged_seq}
    if owed.handed_over:
        return _("open, handed to those who operate the run when it was cancelled")
    return _("open; the receipt of step %(step)s discharges it") % {"step": owed.by}
