"""What the latest plan takes for true, as rows: whether it holds, what it rests on, and what broke it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.assumptions import Assumed, Basis, Standing, assumed
from runs.pages import observed, words

Row = dict[str, Any]

STANDINGS: Final[dict[Standing, words.Words]] = {
    Standing.HOLDS: gettext_lazy("Holds"),
    Standing.OUT_OF_DATE: gettext_lazy("Basis out of date"),
    Standing.BROKEN: gettext_lazy("Broken"),
}


def rows(state: s.RunState, log: Sequence[e.Recorded], now: datetime) -> list[Row]:
    """The `assumptions` of parts/assumptions.html: broken first, those too that ended the plan before."""
    if state.plan is None:
        return []
    read = observed.readings(log)
    found = [_row(state, state.plan, x, read) for x in assumed(state, state.plan, now)]
    if len(state.plans) > 1:
        before = state.plans[-2]
        found += [_row(state, before, x, read) for x in assumed(state, before, now) if x.seq]
    return _sorted(found)


def of_plan(state: s.RunState, plan: s.PlanVersion, log: Sequence[e.Recorded], now: datetime) -> list[Row]:
    """The same of one version, for a page of its own: what it rests on is linked on the run's page."""
    read, at = observed.readings(log), reverse("run", args=[state.identity.run])
    return _sorted([_row(state, plan, x, read, at) for x in assumed(state, plan, now)])


def _sorted(found: list[Row]) -> list[Row]:
    order = list(STANDINGS)
    return sorted(found, key=lambda row: -order.index(row["code"]))


def _row(
    state: s.RunState,
    plan: s.PlanVersion,
    found: Assumed,
    read: dict[tuple[str, str], list[observed.Reading]],
    at: str = "",
) -> Row:
    over = state.state in s.TERMINAL and found.standing is not Standing.BROKEN
    return {
        "id": f"v{plan.version}-{found.number}",
        "plan": plan.version,
        "text": found.text,
        "code": found.standing,
        "standing": _("The run is over") if over else str(STANDINGS[found.standing]),
        "basis": [_basis(x, found, at) for x in found.basis],
        "broken": _broken(state, plan, found, read) if found.seq else "",
        "event_url": f"{reverse('run-events', args=[state.identity.run])}?from={found.seq}#event-{found.seq}"
        if found.seq
        else "",
    }


def _basis(found: Basis, of: Assumed, at: str) -> Row:
    if not found.id.startswith("O-"):
        return {"id": found.id, "name": found.name, "url": f"{at}#constraint-{found.id}", "note": ""}
    note = "" if found.fresh or of.seq else _("out of date: it is read again before the run goes on")
    return {"id": found.id, "name": found.name, "url": f"{at}#observation-{found.id}", "note": note}


def _broken(
    state: s.RunState,
    plan: s.PlanVersion,
    found: Assumed,
    read: dict[tuple[str, str], list[observed.Reading]],
) -> str:
    """Which part of its basis is otherwise, and by how much."""
    by = [_otherwise(x, found.seq or 0, read) for x in found.basis if x.name in found.by or x.id in found.by]
    facts = {"seq": found.seq, "by": words.clauses(filter(None, by)) or found.by, "version": plan.version}
    if plan.voided_seq is not None:
        return _("Broken since event %(seq)d by %(by)s. Plan v%(version)d ended with that.") % facts
    return _("Broken since event %(seq)d by %(by)s.") % facts


def _otherwise(found: Basis, seq: int, read: dict[tuple[str, str], list[observed.Reading]]) -> str:
    if found.seen is None:
        return _("the constraint %(id)s, which does not stand as it was accepted") % {"id": found.id}
    before = [x for x in read.get((found.seen.tool, found.seen.arguments), []) if x.seq < seq]
    facts = {"id": found.id, "name": found.name}
    if len(before) < 2:
        return _("%(id)s (%(name)s)") % facts
    was, now = before[-2:]
    facts["what"] = observed.what_changed(was.value, was.version, now.value, now.version)
    return _("%(id)s (%(name)s): %(what)s") % facts
