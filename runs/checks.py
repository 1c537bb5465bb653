"""System checks of the registered agents: what contradicts itself is refused at start, not at the first crash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from runs.agents import Agent, configured, registered
from runs.tools import Tool, WritingTool

LONGEST_NAME = 100


@register()
def tools(app_configs: Sequence[AppConfig] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Every tool of every agent says only what can be true together."""
    try:
        agents = registered().values()
    except (ImportError, AttributeError):
        return []  # another check names the agent that cannot be imported
    return [fault for agent in agents for fault in _agent(agent)]


@register()
def artifact_storage(app_configs: Sequence[AppConfig] | None, **_kwargs: Any) -> list[CheckMessage]:
    """There is a place for artifacts."""
    if "artifacts" in settings.STORAGES:
        return []
    hint = "Add it to STORAGES, as console.settings does; web and workers must see the same one."
    return [Error("There is no storage called artifacts.", hint=hint, id="runs.E007")]


@register()
def configuration(app_configs: Sequence[AppConfig] | None, **_kwargs: Any) -> list[CheckMessage]:
    """The document of constraints for all agents can be asked at all."""
    try:
        configured(settings.HANDOFF_CONFIGURATION)
    except ValueError as error:
        hint = "Name an absolute path, or a url that begins with http:// or https:// and holds no password."
        return [Error(f"HANDOFF_CONFIGURATION names no source: {error}.", hint=hint, id="runs.E012")]
    return []


def _agent(agent: Agent) -> Iterator[CheckMessage]:
    names = [tool.name for tool in agent.tools]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield _fault(
            agent, name, "stands twice", "Give each tool of an agent a name of its own.", "runs.E001"
        )
    if agent.version in agent.takes_over:
        text = f"{agent.name} {agent.version}: it says that it takes over its own runs."
        yield Error(text, hint="Name other versions in takes_over.", id="runs.E006")
    if agent.context_budget is not None and agent.context_budget <= 0:
        text = f"{agent.name} {agent.version}: its context_budget is {agent.context_budget} bytes."
        yield Error(text, hint="Leave it out for the default, or give it room.", id="runs.E008")
    for tool in agent.tools:
        yield from _names(agent, tool)
        if isinstance(tool, WritingTool):
            yield from _durations(agent, tool)
            yield from _repeats(agent, tool)
            yield from compensation_faults(agent, tool)


def _names(agent: Agent, tool: Tool) -> Iterator[CheckMessage]:
    for what, value in (("name", tool.name), ("system", tool.system)):
        if not value.strip() or value != "".join(value.split()) or len(value) > LONGEST_NAME:
            hint = f"Use at most {LONGEST_NAME} characters and no blanks."
            yield _fault(agent, tool.name, f"has the {what} {value!r}", hint, "runs.E002")


def _durations(agent: Agent, tool: WritingTool) -> Iterator[CheckMessage]:
    """A key that is forgotten while the call may still run protects nothing."""
    default = settings.HANDOFF_DURATIONS
    whole: timedelta = (tool.dispatch_window or default.dispatch_window) + (
        tool.timeout or default.tool_timeout
    )
    retention = tool.idempotency_retention
    if retention is not None and retention <= whole:
        hint = (
            "State a retention longer than dispatch window and timeout, or None where keys are not honoured."
        )
        yield _fault(
            agent, tool.name, f"honours keys for {retention}, its calls take up to {whole}", hint, "runs.E003"
        )
    declared = (tool.dispatch_window, tool.timeout, tool.settle, tool.patience)
    if any(duration is not None and duration <= timedelta() for duration in declared):
        yield _fault(
            agent,
            tool.name,
            "declares a duration that is not positive",
            "Use None for the default.",
            "runs.E004",
        )


def compensation_faults(agent: Agent, tool: WritingTool) -> Iterator[CheckMessage]:
    """A tool that undoes is there, writes, and is told how; and what cannot be undone names none.

    It may be of any kind, blind ones too: its effect is an intent like any other, and where nobody can say what became
    of it a person settles that before the run ends.
    """
    if tool.compensation is None:
        return
    if getattr(tool, "reversible", False) is False:
        what = f"cannot be undone, and names {tool.compensation} as what undoes it"
        yield _fault(agent, tool.name, what, "Set reversible to True, or name no compensation.", "runs.E009")
    writing = {x.name for x in agent.tools if isinstance(x, WritingTool)}
    if tool.compensation not in writing:
        what = f"names {tool.compensation} as what undoes it, which is no writing tool of this agent"
        yield _fault(
            agent, tool.name, what, "Give the agent that tool, or name no compensation.", "runs.E010"
        )
    elif tool.compensation == tool.name:
        what = "names itself as what undoes it"
        yield _fault(agent, tool.name, what, "Name the tool that does the opposite.", "runs.E010")
    if type(tool).undo_arguments is WritingTool.undo_arguments:
        what = f"does not say with which arguments {tool.compensation} undoes it"
        yield _fault(agent, tool.name, what, "Define undo_arguments.", "runs.E011")


def untold(tool: WritingTool) -> bool:
    """Whether one id names many effects and nothing tells which record is whose: only a key could."""
    asked = getattr(tool, "queryable", False) and getattr(tool, "idempotency_retention", None) is None
    return tool.repeatable_ids and asked


def _repeats(agent: Agent, tool: WritingTool) -> Iterator[CheckMessage]:
    if untold(tool):
        what = "says that its operation ids repeat, and is asked about them without a key that tells its own"
        hint = "Send a key that the records show, or give each effect an operation id of its own."
        yield _fault(agent, tool.name, what, hint, "runs.E005")


def _fault(agent: Agent, tool: str, what: str, hint: str, id_: str) -> CheckMessage:
    return Error(f"{agent.name} {agent.version}: the tool {tool} {what}.", hint=hint, id=id_)
