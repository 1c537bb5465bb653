"""What code a run is bound to: the version or digest of each part of an agent that a run rests on.

Two agents with the same record do the same for a run, whatever else differs in them. Reads no database, calls no tool.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

from runs.agents import Agent
from runs.machine.canonical import canonical, digest
from runs.machine.evolve import REDUCER_VERSION
from runs.machine.revalidate import POLICY
from runs.tools import ReadingTool, Tool, WritingTool

TOOL: Final = "tool:"
#: Of a tool's declarations: its name is the part's own, and the schema is digested as what it allows.
_APART: Final = frozenset({"name", "schema"})
_KINDS: Final[tuple[type[Tool], ...]] = (Tool, ReadingTool, WritingTool)


def recorded(agent: Agent) -> dict[str, str]:
    """Part -> version or digest: each tool, the policy, the reducer, and whatever the agent names (prompt, model)."""
    tools = {f"{TOOL}{tool.name}": tool_digest(tool) for tool in agent.tools}
    return {**agent.versions, **tools, POLICY: agent.policy.version, "reducer": str(REDUCER_VERSION)}


def tool_digest(tool: Tool) -> str:
    """Of all that a tool promises: the schema of its arguments and its declarations. What it does inside is not seen.

    A declaration that is the default is left out, so that a new one with a default changes no digest.
    """
    declared = {name: _plain(value) for name, value in _declared(tool)}
    return digest("tool", canonical({"schema": _schema(tool.schema), "declared": declared}))


@cache
def _schema(schema: type[BaseModel]) -> str:
    return canonical(schema.model_json_schema())


def _declared(tool: Tool) -> Iterator[tuple[str, Any]]:
    for kind in _KINDS:
        names = inspect.get_annotations(kind) if isinstance(tool, kind) else {}
        for name in names.keys() - _APART:
            value = getattr(tool, name, None)
            if name not in vars(kind) or value != vars(kind)[name]:
                yield name, value


def _plain(value: Any) -> Any:
    """A declaration as a JSON value, the same in every process."""
    match value:
        case None | bool() | int() | str():
            return value
        case timedelta():
            return f"{value.total_seconds()} s"
        case Decimal():
            return str(value)
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case set() | frozenset():
            return sorted(str(item) for item in value)
        case list() | tuple():
            return [_plain(item) for item in value]
        case type():
            return value.__qualname__
        case _:
            return str(getattr(value, "name", type(value).__qualname__))
