"""The plan that undoes: made by code from what stands, in reverse order, reviewed and carried out like any other."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from runs import planning
from runs.agents import Agent
from runs.machine import decide
from runs.machine import state as s
from runs.machine.canonical import canonical, digest, parse
from runs.machine.events import Inherited, text_of
from runs.tools import WritingTool

LONGEST = 150  #: of what a step's name quotes; the rest is told by a digest


def undo_document(state: s.RunState, agent: Agent) -> s.PlanDocument | None:
    """The next plan version, which undoes all that stands and can be undone; None where there is nothing.

    Raises what a tool raises that cannot say how its effect is undone: nothing has happened then.
    """
    steps = tuple(_step(stands, tool, undo) for stands, tool, undo in _undoable(state, agent))
    if not steps:
        return None
    return s.PlanDocument(
        run=state.identity.run, version=len(state.plans) + 1, goal_version=state.goal.version,
        constraints_digest=decide.constraints_digest(state), steps=steps, promises=(), assumptions=(), undo=True,
        policy_version=planning.policy_for(state, agent).version,
    )  # fmt: skip


def undoable(state: s.RunState, agent: Agent) -> tuple[Inherited, ...]:
    """What stands and this agent version can undo, the latest first."""
    return tuple(stands for stands, _, _ in _undoable(state, agent))


def left_out(state: s.RunState, agent: Agent) -> tuple[Inherited, ...]:
    """What stands and can be undone, and came to stand after the plan that undoes was made."""
    planned_for = [step.undoes for step in state.plan.plan.steps] if state.plan else []
    return tuple(x for x in undoable(state, agent) if s.Undoes(run=x.run, effect=x.effect) not in planned_for)


def can_undo(agent: Agent, tool: str) -> bool:
    """Whether this agent version has a tool that undoes what the tool of this name does."""
    return _pair(agent, tool) is not None


def left_standing(state: s.RunState, agent: Agent | None) -> tuple[Inherited, ...]:
    """What stands and cannot be undone by this agent version; all of it where no code is at hand."""
    can = undoable(state, agent) if agent else ()
    return tuple(x for x in decide.standing(state) if x not in can)


def _undoable(state: s.RunState, agent: Agent) -> Iterator[tuple[Inherited, WritingTool, WritingTool]]:
    for stands in reversed(decide.standing(state)):
        pair = _pair(agent, stands.tool)
        if pair:
            yield stands, *pair


def _pair(agent: Agent, name: str) -> tuple[WritingTool, WritingTool] | None:
    """The tool that makes such effects, and the one that undoes them."""
    try:
        tool = agent.writing(name)
        return (tool, agent.writing(tool.compensation)) if tool.reversible and tool.compensation else None
    except (KeyError, StopIteration):
        return None


def _step(stands: Inherited, tool: WritingTool, undo: WritingTool) -> s.PlanStep:
    arguments = undo.validate(tool.undo_arguments(parse(text_of(stands.arguments)), stands.reference))
    step = planning.planned(undo, _name(stands), arguments, canonical(arguments), ())
    again = f"~{stands.round}" if stands.round else ""  # what was done anew is undone anew
    return replace(
        step, operation_id=f"{step.operation_id}{again}",
        undoes=s.Undoes(run=stands.run, effect=stands.effect),
    )  # fmt: skip


def _name(stands: Inherited) -> str:
    """What the step acts on: the operation that it undoes."""
    name = f"undo:{stands.system}:{stands.operation_id}"
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…{digest('step', name)[-12:]}"
