"""Whether a version of an agent can take a run over: a function of the run's state and that version's declarations.

It must say so itself (`Agent.takes_over`), and what the run planned, did, or may have done must be the same operations
to it. Otherwise it could do something a second time under another name.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from runs import planning
from runs.agents import Agent, registered
from runs.machine import decide
from runs.machine import state as s
from runs.machine.canonical import Uncanonical, digest, parse
from runs.machine.events import text_of
from runs.machine.late import counted
from runs.tools import ArgumentsRefused, ReadingTool, Tool, WritingTool
from runs.versions import recorded

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """One thing that stands in the way: a code, what it is about, and what differs."""

    code: str
    subject: str = ""
    was: str = ""
    now: str = ""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One writing use of a tool that the run names: planned, or held by an effect of its lineage."""

    tool: str
    system: str
    operation_id: str
    arguments: str
    digest: str
    held: bool
    own: bool  #: False for what another run of the lineage did, maybe one of another agent


def obstacles(state: s.RunState, agent: Agent) -> tuple[Obstacle, ...]:
    """Everything that keeps this version of the agent from taking the run over now; empty where nothing does."""
    return tuple(dict.fromkeys(_all(state, agent)))


def _all(state: s.RunState, agent: Agent) -> Iterator[Obstacle]:
    if code := decide.cannot_move(state):
        yield Obstacle(code=code)
    yield from _declared(state.identity, agent)
    for operation in _operations(state):
        yield from _operation(operation, agent)
    for rest in _rests(state):
        yield from _reading(rest, agent)


def _declared(identity: s.Identity, agent: Agent) -> Iterator[Obstacle]:
    """What the version says. The run's own version, changed since, is taken for its own heir."""
    was = identity.agent_version
    if was == agent.version:
        if not changed_since(identity, agent):
            yield Obstacle(code="same_code", subject=was)
    elif was not in agent.takes_over:
        yield Obstacle(code="not_taken_over", was=was, now=agent.version)


def changed_since(identity: s.Identity, agent: Agent) -> bool:
    """Whether the code of the run's own version is not the one that the run recorded."""
    return bool(identity.code) and identity.code != recorded(agent)


def _operations(state: s.RunState) -> Iterator[Operation]:
    """The plan in force, what this run holds, and what earlier runs of its lineage did."""
    for x in state.effects.values():
        if x.status in s.HELD:
            yield Operation(
                tool=x.tool, system=x.system, operation_id=x.operation_id, arguments=x.arguments,
                digest=x.arguments_digest, held=True, own=True,
            )  # fmt: skip
    for y in state.inherited:
        yield Operation(
            tool=y.tool, system=y.system, operation_id=y.operation_id, arguments=text_of(y.arguments),
            digest=y.arguments_digest, held=True, own=False,
        )  # fmt: skip
    for step in _plan(state):
        yield Operation(
            tool=step.tool, system=step.system, operation_id=step.operation_id, arguments=counted(step),
            digest=step.arguments_digest, held=False, own=True,
        )  # fmt: skip


def _plan(state: s.RunState) -> tuple[s.PlanStep, ...]:
    """Its steps that have an effect; a wait uses no tool."""
    steps = state.plan.plan.steps if state.plan and state.plan.voided_seq is None else ()
    return tuple(step for step in steps if step.wait is None)


def _rests(state: s.RunState) -> list[s.PlanRest]:
    return [rest for step in _plan(state) for rest in step.rests_on]


def _operation(operation: Operation, agent: Agent) -> Iterator[Obstacle]:
    """The same tool must make the same operation of the same arguments; what is held must also be the same to it."""
    tool = _named(agent, operation.tool, WritingTool)
    if tool is None:
        if operation.own:
            yield Obstacle(code="tool_missing", subject=operation.tool)
        return
    yield from _system(tool, operation.system)
    try:
        arguments = tool.validate(parse(operation.arguments))
        id_ = tool.operation_id(arguments)
        text = planning.binding_text(tool, arguments)
    except (ArgumentsRefused, Uncanonical) as error:
        yield Obstacle(code="arguments", subject=operation.operation_id, now=str(error))
    except Exception as error:
        # A tool is foreign code: one that fails on these arguments cannot take them over.
        log.exception("the tool failed on what a run did", extra={"tool": operation.tool})
        yield Obstacle(code="arguments", subject=operation.operation_id, now=type(error).__name__)
    else:
        if not _same_id(operation.operation_id, id_):
            yield Obstacle(code="operation_id", subject=tool.name, was=operation.operation_id, now=id_)
        elif operation.held and digest("arguments", text) != operation.digest:
            yield Obstacle(code="meaning", subject=operation.operation_id, was=operation.arguments, now=text)


def _same_id(known: str, computed: str) -> bool:
    """Whether the tool computes this id. What the run knows may carry the suffix of a round."""
    base, hash_, round_ = known.rpartition("#")
    return known == computed or (bool(hash_) and base == computed and round_.isdecimal())


def _reading(rest: s.PlanRest, agent: Agent) -> Iterator[Obstacle]:
    """What the plan rests on must be readable the same way."""
    tool = _named(agent, rest.tool, ReadingTool)
    if tool is None:
        yield Obstacle(code="tool_missing", subject=rest.tool)
        return
    try:
        tool.validate(parse(rest.arguments))
    except (ArgumentsRefused, Uncanonical) as error:
        yield Obstacle(code="arguments", subject=rest.resource, now=str(error))


def _system(tool: Tool, was: str) -> Iterator[Obstacle]:
    if tool.system != was:
        yield Obstacle(code="system", subject=tool.name, was=was, now=tool.system)


def _named[T: Tool](agent: Agent, name: str, kind: type[T]) -> T | None:
    return next((t for t in agent.tools if t.name == name and isinstance(t, kind)), None)


def heirs(name: str, version: str) -> list[Agent]:
    """The registered versions of the agent that say that they take runs of this one over."""
    known = (a for a in registered().values() if a.name == name and version in a.takes_over)
    return sorted(known, key=lambda a: a.version)
