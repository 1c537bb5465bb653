"""Arguments that a plan leaves open, as its pages show them: within which bounds, from where; and what came."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from runs.machine import late
from runs.machine import state as s
from runs.machine.canonical import parse
from runs.machine.late import Bounds, PlanLate, Source, SourceKind
from runs.pages.values import flat

Row = dict[str, Any]


def arguments(step: s.PlanStep) -> list[Row]:
    """The `arguments` of parts/args.html: every value as it will be sent, and what stands in place of those to come."""
    return [
        *(flat(step.arguments) if step.arguments != "{}" or not step.late else ()),
        *map(_open, step.late),
    ]


def of_effect(state: s.RunState, effect: s.Effect) -> list[Row]:
    """The arguments that were sent; those that were bound late with where they came from."""
    rows = flat(effect.arguments)
    if not effect.bound:
        return rows
    plan = next(p for p in state.plans if p.version == effect.plan_version)
    step = next(x for x in plan.plan.steps if x.name == effect.step)
    notes = {x.path: _came(x) for x in step.late}
    return [row | ({"note": notes[row["path"]]} if row["path"] in notes else {}) for row in rows]


def _open(open_: PlanLate) -> Row:
    facts = {"source": source(open_.source), "value": parse(open_.counts_as)}
    note = _("from %(source)s. Until then it counts as %(value)s. Outside these bounds nothing is sent.")
    return {"path": open_.path, "value": bounds(open_.bounds), "type": "", "note": note % facts}


def _came(open_: PlanLate) -> str:
    facts = {"source": source(open_.source), "bounds": late.written(open_.bounds)}
    return _("bound late, from %(source)s, within %(bounds)s") % facts


def bounds(found: Bounds) -> str:
    """What the value may be, as a phrase."""
    if found.one_of:
        return _("bound later: one of %(values)s") % {"values": late.written(found)}
    if found.type != "text":
        ends = {"least": found.least, "most": found.most}
        return _("bound later: between %(least)s and %(most)s") % ends
    facts = {"longest": found.longest or late.LONGEST, "pattern": found.pattern}
    if found.pattern:
        return _("bound later: at most %(longest)d characters that match %(pattern)s") % facts
    return _("bound later: any text of at most %(longest)d characters") % facts


def source(found: Source) -> str:
    """Where the value comes from, as a phrase."""
    facts = {"step": found.step, "run": found.run, "tool": found.tool, "arguments": found.arguments}
    match found.kind:
        case SourceKind.RECEIPT:
            said = _("the receipt of step %(step)s") % facts
        case SourceKind.SIGNAL:
            said = _("the answer that step %(step)s waits for") % facts
        case SourceKind.CHILD:
            said = _("the run %(run)s that step %(step)s starts") % facts
        case SourceKind.READING:
            said = _("a reading just before the send (%(tool)s %(arguments)s)") % facts
    return f"{said} ({found.path})" if found.path else said
