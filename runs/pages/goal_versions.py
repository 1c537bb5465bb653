"""The goal in all its versions, each with who wrote it, why, and what changed."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from runs.machine import state as s
from runs.pages.word_diff import word_diff

Context = dict[str, Any]


def version(goal: s.Goal, before: s.Goal | None = None) -> Context:
    """One version of the goal (parts/goal_versions.html), with what changed in it since `before`."""
    return {
        "version": goal.version,
        "text": goal.text,
        "by": goal.author.name,
        "at": goal.at,
        "reason": goal.reason,
        "taken": _taken(goal),
        "diff": word_diff(before.text, goal.text) if before else (),
    }


def history(state: s.RunState) -> list[Context]:
    """Every version, the newest first; none where the goal is what the run was started with."""
    if not state.goal.revised:
        return []
    pairs = zip(state.goals, (None, *state.goals), strict=False)
    return [version(goal, before) for goal, before in pairs][::-1]


def _taken(goal: s.Goal) -> str:
    if goal.taken is None:
        return ""
    facts = {"run": goal.taken.run, "version": goal.taken.version}
    return _("This run began with it: it is goal v%(version)d of %(run)s.") % facts


def note_on(state: s.RunState, plan: s.PlanVersion) -> Context:
    """Which goal a plan version is for, and whether that is still the committed one."""
    goal = next(g for g in state.goals if g.version == plan.plan.goal_version)
    if goal is state.goal:
        return {"goal_text": goal.text, "goal_note": _("committed now")}
    note = _("revised since: committed now is v%(version)d") % {"version": state.goal.version}
    return {"goal_text": goal.text, "goal_note": note}
