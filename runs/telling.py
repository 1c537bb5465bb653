"""Texts about a tool that everybody reads, kept free of the values that it names as sensitive.

The values themselves stand in arguments, readings and evidence, where they are hidden from whoever may not see them.
What is written before any of these is kept, such as why a reading failed, has to go without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runs.machine import state as s
from runs.machine.canonical import parse
from runs.machine.hidden import leaves, paths_of
from runs.machine.references import referred
from runs.tools import Tool

#: What stands in a kept text for a value.
LEFT_OUT = "•••"


def values(texts: Iterable[str], paths: Iterable[str]) -> Iterator[str]:
    """The sensitive values in canonical texts, as texts; of a long one that stands elsewhere, none."""
    named = frozenset(paths)
    for text in texts if named else ():
        if referred(text) is None:
            for value in paths_of(parse(text), named):
                yield from leaves(value)


def without(tool: Tool, texts: Iterable[str], said: str) -> str:
    """What was said about the tool, without the sensitive values of these arguments or answers."""
    for value in sorted(values(texts, tool.sensitive), key=len, reverse=True):
        said = said.replace(value, LEFT_OUT)
    return said


def asked(tool: Tool, arguments: str) -> str:
    """A reading as it is named in texts: with its arguments, unless some of them are sensitive."""
    return tool.name if tool.sensitive else f"{tool.name} {arguments}"


def names_hidden(tool: Tool, texts: Iterable[str], name: str) -> bool:
    """Whether a name, which everybody is shown, was made of a sensitive value in these."""
    return any(value in name for value in values(texts, tool.sensitive))


def known(state: s.RunState) -> frozenset[str]:
    """The sensitive values that the run knows by now: of its input, its readings, and its effects."""
    found = set(values([state.identity.input], state.identity.sensitive))
    for seen in state.observations.values():
        found |= set(values([seen.arguments, seen.value], seen.sensitive))
    for plan in state.plans:
        for step in plan.plan.steps:
            found |= set(values([step.arguments], step.sensitive)) if step.wait is None else set()
    return frozenset(found)
