"""Steps that wait, as a plan's pages show them: what for, which runs they start. They send nothing and have no key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.contract import length
from runs.machine import state as s
from runs.machine.waits import PlanChild, PlanWait, WaitKind
from runs.pages import words
from runs.pages.values import flat

Row = dict[str, Any]


def row(step: s.PlanStep, wait: PlanWait) -> Row:
    """The `change` of a step that waits: {wait, step, title, children}."""
    return {
        "step": step.name,
        "title": "",
        "wait": what_for(wait),
        "reversible": True,
        "children": [_child(x) for x in wait.children],
    }


def _child(child: PlanChild) -> Row:
    return {
        "name": child.name,
        "agent": child.agent,
        "version": child.version,
        "goal": child.goal,
        "input": flat(child.input),
        "budget": child.budget or "",
    }


def what_for(wait: PlanWait) -> str:
    """What the step waits for, as a sentence."""
    match wait.kind:
        case WaitKind.TIMER:
            return _timer(wait)
        case WaitKind.SIGNAL:
            return _signal(wait)
        case WaitKind.CHILDREN:
            text = ngettext(
                "Starts %(number)d run and waits until it has ended.",
                "Starts %(number)d runs and waits until all have ended.",
                len(wait.children),
            )
            return text % {"number": len(wait.children)}


def _timer(wait: PlanWait) -> str:
    if wait.until is not None:
        return _("Waits until %(at)s.") % {"at": words.moment(wait.until)}
    return _("Waits for %(time)s.") % {"time": length(wait.length) if wait.length is not None else "–"}


def _signal(wait: PlanWait) -> str:
    facts = {"signal": wait.signal, "time": length(wait.length) if wait.length is not None else ""}
    if wait.length is None:
        return _("Waits for the answer “%(signal)s”, however long that takes.") % facts
    return _("Waits for the answer “%(signal)s” for at most %(time)s; then a person decides.") % facts


def starts(steps: Iterable[s.PlanStep]) -> str:
    """How many runs the steps start; empty where they start none."""
    number = sum(len(step.wait.children) for step in steps if step.wait)
    if not number:
        return ""
    text = ngettext(
        "It also starts %(number)d run, which has its own plan and approvals.",
        "It also starts %(number)d runs, which have their own plans and approvals.",
        number,
    )
    return text % {"number": number}


def nothing_but(runs: str) -> str:
    """The summary of a plan that sends nothing itself."""
    said = _("This plan changes nothing outside by itself.")
    return " ".join(filter(None, (said, runs)))
