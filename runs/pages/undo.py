"""What undoing a run would do and what stays, in words: for the pages that end a run, and for one that has ended."""

from __future__ import annotations

import logging
from typing import Any

from django.utils.translation import gettext as _

from runs import agents, undoing
from runs.machine import decide
from runs.machine import state as s
from runs.machine.events import Inherited
from runs.models import Run
from runs.pages import words

log = logging.getLogger(__name__)
Row = dict[str, Any]


def code_of(run: Run) -> agents.Agent | None:
    """The agent version of the run, where this process has it."""
    return agents.registered().get((run.agent.name, run.agent_version))


def name_of(state: s.RunState, stands: Inherited) -> str:
    """What stands, by its number, its run where that is another one, and its title."""
    facts = {"effect": f"E-{stands.effect}", "run": stands.run, "title": words.inside(stands.title)}
    if stands.run == state.identity.run:
        return _("%(effect)s (%(title)s)") % facts
    return _("%(effect)s of %(run)s (%(title)s)") % facts


def offered(state: s.RunState, agent: agents.Agent | None) -> bool:
    """Whether there is anything that undoing could reach: of this run, of those it started, or still in doubt."""
    if state.open_children:
        return True
    if agent is None:
        return bool(decide.standing(state) or state.open_effects)
    may_come = any(undoing.can_undo(agent, effect.tool) for effect in state.open_effects)
    return may_come or bool(undoing.undoable(state, agent))


def undone(state: s.RunState, agent: agents.Agent | None) -> list[str]:
    """What would be undone and by what, in the order in which it is done: the latest first."""
    if agent is None:
        facts = {"version": state.identity.agent_version}
        return [
            _("What can be undone. This console does not have version %(version)s: a worker finds out.")
            % facts
        ]
    found = undoing.undoable(state, agent)
    by = _titles(state, agent)
    text = _("%(what)s, by: %(step)s.")
    return [
        text % {"what": name_of(state, x), "step": words.inside(by[x.run, x.effect])}
        if (x.run, x.effect) in by
        else words.ended(name_of(state, x))
        for x in found
    ]


def _titles(state: s.RunState, agent: agents.Agent) -> dict[tuple[str, int], str]:
    """Each effect that would be undone -> the step that does it; nothing where a tool cannot say."""
    try:
        document = undoing.undo_document(state, agent)
    except Exception:
        log.exception("the plan that undoes could not be shown", extra={"planner": state.identity.agent})
        return {}
    steps = document.steps if document else ()
    return {(x.undoes.run, x.undoes.effect): x.title for x in steps if x.undoes}


def not_undone(state: s.RunState, agent: agents.Agent | None) -> list[str]:
    """What stands and would stay, each with why."""
    if agent is None:
        return []
    return [
        _("%(what)s: %(why)s") % {"what": name_of(state, x), "why": _why_not(agent, x)}
        for x in reversed(undoing.left_standing(state, agent))
    ]


def _why_not(agent: agents.Agent, stands: Inherited) -> str:
    try:
        reversible = agent.writing(stands.tool).reversible
    except (KeyError, StopIteration):
        return _("this version of the agent does not have its tool.")
    if reversible:
        return _("no tool of this agent undoes it; a person may do it outside.")
    return _("it cannot be undone.")


def in_doubt(state: s.RunState, agent: agents.Agent | None) -> list[str]:
    """What becomes of effects that are in flight or unknown where undoing is chosen."""
    return [_doubtful(effect, agent) for effect in state.open_effects]


def _doubtful(effect: s.Effect, agent: agents.Agent | None) -> str:
    facts = {"effect": words.effect_title(effect)}
    if agent is not None and undoing.can_undo(agent, effect.tool):
        return _("%(effect)s is settled first. If it happened, it is undone too.") % facts
    return _("%(effect)s is settled first. If it happened, it stays.") % facts


def left(state: s.RunState) -> list[str]:
    """What still stands after the end of a run before its goal, the latest first."""
    if state.state is not s.State.CANCELLED:
        return []
    return standing(state)


def standing(state: s.RunState) -> list[str]:
    """All that stands now, the latest first."""
    return [name_of(state, x) for x in reversed(decide.standing(state))]


def undone_of(state: s.RunState, undoes: s.Undoes) -> str:
    """The effect that a step undoes, by number and title as far as this run knows it."""
    own = state.effects.get(undoes.effect) if undoes.run == state.identity.run else None
    if own:
        return _("%(effect)s (%(title)s)") % {"effect": f"E-{own.number}", "title": words.inside(own.title)}
    for known in (*state.inherited, *state.undone):
        if (known.run, known.effect) == (undoes.run, undoes.effect):
            return name_of(state, known)
    return effect_of(state, undoes)


def effect_of(state: s.RunState, undoes: s.Undoes) -> str:
    """An effect by its number, and its run where that is another one."""
    facts = {"effect": f"E-{undoes.effect}", "run": undoes.run}
    return facts["effect"] if undoes.run == state.identity.run else _("%(effect)s of %(run)s") % facts
