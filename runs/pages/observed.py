"""Observations as rows: what was read, how old it is, and what changed since it was read before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.rights import Right
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.references import same
from runs.machine.transitions import allows
from runs.pages import words
from runs.pages.differing import differing

Row = dict[str, Any]
AGEING = 70  # percent of the half-life from which an observation is called ageing
_Read = e.ObservationRecorded | e.ObservationReread


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One reading of a fact, in the order of the log."""

    seq: int
    at: datetime
    by: str
    value: str
    version: str


def readings(log: Iterable[e.Recorded]) -> dict[tuple[str, str], list[Reading]]:
    """Every reading of each fact, the latest last."""
    found: dict[tuple[str, str], list[Reading]] = {}
    for r in log:
        if isinstance(r.event, _Read):
            read = Reading(
                seq=r.seq, at=r.event.observed_at, by=r.actor.name if r.actor.kind is e.ActorKind.PERSON else "",
                value=e.text_of(r.event.value), version=r.event.version,
            )  # fmt: skip
            found.setdefault((r.event.tool, e.text_of(r.event.arguments)), []).append(read)
    return found


def rows(state: s.RunState, log: Sequence[e.Recorded], now: datetime) -> list[Row]:
    """The `observations` of parts/observations.html: too old first."""
    read = readings(log)
    found = [_row(state, o, read.get((o.tool, o.arguments), []), now) for o in state.observations.values()]
    return sorted(found, key=lambda r: (-r["percent"], not r["changed"], r["number"]))


def _row(state: s.RunState, seen: s.Observation, read: list[Reading], now: datetime) -> Row:
    over = state.state in s.TERMINAL
    until = state.since if over and state.since else now
    age = max(until - seen.observed_at, timedelta())
    percent = min(100, int(100 * age / seen.half_life)) if seen.half_life else 100
    return {
        "id": f"O-{seen.number}",
        "number": seen.number,
        "tool": seen.tool,
        "arguments": seen.arguments,
        "value": seen.value,
        "resource": seen.resource,
        "version": seen.version,
        "at": seen.observed_at,
        "age": age,
        "limit": seen.half_life,
        "percent": percent,
        "freshness": "over" if over else "old" if percent >= 100 else "ageing" if percent >= AGEING else "fresh",
        "used_by": _used_by(state, seen),
        "again": _again(state, seen, read),
        "changed": seen.reread is not None,
    }  # fmt: skip


def _again(state: s.RunState, seen: s.Observation, read: list[Reading]) -> str:
    """What the latest reading found against the one before it; empty where there was one only."""
    if seen.reread is not None:
        facts = {
            "name": seen.reread.by, "at": words.moment(seen.reread.at),
            "what": what_changed(seen.value, seen.version, seen.reread.value, seen.reread.version),
            "seq": seen.reread.seq,
        }  # fmt: skip
        return (
            _(
                "Read again by %(name)s at %(at)s, and it is otherwise: %(what)s (event %(seq)d). The run finds "
                "that by itself before it goes on."
            )
            % facts
        )
    if len(read) < 2:
        return ""
    before, latest = read[-2], read[-1]
    facts = {"at": words.moment(latest.at), "seq": latest.seq, "name": latest.by}
    if same(before.value, latest.value) and before.version == latest.version:
        if latest.by:
            return _("Read again by %(name)s at %(at)s: the same (event %(seq)d).") % facts
        return _("Read again at %(at)s: the same, so the run went on (event %(seq)d).") % facts
    facts["what"] = what_changed(before.value, before.version, latest.value, latest.version)
    return _("Read again at %(at)s: %(what)s (event %(seq)d).") % facts


def what_changed(was: str, was_version: str, now: str, now_version: str) -> str:
    """The difference of two readings, for use inside a sentence."""
    facts = {"was": was_version, "now": now_version}
    version = _("version %(was)s → %(now)s") % facts if was_version != now_version else ""
    return words.joined([x for x in (differing(was, now), version) if x]) or _("nothing")


def _used_by(state: s.RunState, seen: s.Observation) -> str:
    steps = state.plan.plan.steps if state.plan else ()
    key = (seen.tool, seen.arguments)
    users = [str(n) for n, x in enumerate(steps, 1) if key in {(r.tool, r.arguments) for r in x.rests_on}]
    return _("used by step %(steps)s") % {"steps": words.joined(users)} if users else ""


def reading_again(state: s.RunState, mine: frozenset[Right]) -> Row:
    """Where this person can have them read again; empty where they cannot, or nothing was read."""
    may = Right.OPERATE_RUNS in mine and allows(state.state, e.ObservationReread) and state.observations
    return {"read_url": reverse("observations-read", args=[state.identity.run])} if may else {}
