"""`validate` for the arguments that a planner leaves open: real bounds, a source that comes first, one operation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from runs import agents
from runs.machine import late as parts
from runs.machine.canonical import canonical, plain

MOST_CASES = 64  #: in which a step is looked at
MOST_LATE = 6

Arguments = dict[str, Any]


class LateRefused(ValueError):
    """An argument cannot be left open like this. The text says why."""


@dataclass(frozen=True)
class Open:
    """The arguments of a step that are known, those that are open, and the values that each of these is tried with."""

    known: Arguments
    late: Mapping[str, agents.Late]

    def cases(self) -> Iterator[Arguments]:
        """The arguments as they may become, at every corner of the bounds."""
        tried = [[(path, x) for x in _corners(late.bounds)] for path, late in self.late.items()]
        if math.prod(map(len, tried)) > MOST_CASES:
            raise LateRefused(f"its open arguments can come in more than {MOST_CASES} ways")
        for values in itertools.product(*tried):
            yield parts.merged(self.known, values)


def opened(arguments: Mapping[str, Any]) -> Open:
    """What a planner wrote, taken apart. Raises LateRefused for bounds that bind nothing."""
    found = dict(_late(arguments, ""))
    if len(found) > MOST_LATE:
        raise LateRefused(f"at most {MOST_LATE} arguments can be left open")
    for path, late in found.items():
        for problem in _problems(late.bounds):
            raise LateRefused(f"{path}: {problem}")
    return Open(parts.without(arguments, found), found)


def _late(value: object, path: str) -> Iterator[tuple[str, agents.Late]]:
    if isinstance(value, agents.Late):
        yield path, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _late(inner, f"{path}.{name}" if path else str(name))


def _problems(bounds: agents.Bounds) -> Iterator[str]:
    if bounds.type not in ("decimal", "integer", "text"):
        yield f"{bounds.type!r} is no type of a value that comes late"
    elif bounds.one_of:
        values = [_valued(bounds, x) for x in bounds.one_of]
        if not all(parts.within(_bounds(bounds), x) for x in values):
            yield f"a value of its choice is not of the type {bounds.type}"
    elif bounds.type == "text":
        yield from _text_problems(bounds)
    else:
        yield from _number_problems(bounds)


def _number_problems(bounds: agents.Bounds) -> Iterator[str]:
    if bounds.least is None or bounds.most is None:
        yield "a number that comes late has a least and a most value, or a choice"
        return
    ends = [_valued(bounds, x) for x in (bounds.least, bounds.most)]
    try:
        bad = bounds.least > bounds.most or not all(parts.within(_bounds(bounds), x) for x in ends)
    except (InvalidOperation, TypeError):
        bad = True
    if bad:
        yield f"{bounds.least} … {bounds.most} are no bounds of the type {bounds.type}"


def _text_problems(bounds: agents.Bounds) -> Iterator[str]:
    if bounds.longest is None or not 0 < bounds.longest <= parts.LONGEST:
        yield f"a text that comes late has at most from 1 to {parts.LONGEST} characters, or a choice"
        return
    try:
        if not parts.within(_bounds(bounds), bounds.example):
            yield "its example is not within its bounds"
    except ValueError as error:
        yield str(error)


def _corners(bounds: agents.Bounds) -> list[Any]:
    """The values that a step is tried with: a choice, the ends, or the example."""
    if bounds.one_of:
        return [_valued(bounds, x) for x in bounds.one_of]
    if bounds.type == "text":
        return [bounds.example]
    return [_valued(bounds, x) for x in dict.fromkeys((bounds.least, bounds.most)) if x is not None]


def _valued(bounds: agents.Bounds, value: Decimal | int | str) -> Any:
    if bounds.type == "integer":
        return int(value)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _bounds(bounds: agents.Bounds) -> parts.Bounds:
    def number(value: Decimal | int | None) -> str | None:
        return None if value is None else str(_valued(bounds, value))

    return parts.Bounds(
        type=bounds.type, one_of=tuple(plain(str(x)) for x in bounds.one_of), least=number(bounds.least),
        most=number(bounds.most), pattern=plain(bounds.pattern), longest=bounds.longest,
    )  # fmt: skip


def planned(open_: Open, dearest: Arguments, before: Mapping[str, Any]) -> tuple[parts.PlanLate, ...]:
    """The open arguments as they stand in the plan. `before` are the steps that come first, by name, as proposed."""
    return tuple(
        parts.PlanLate(
            path=path, source=_source(late.source, before), bounds=_bounds(late.bounds),
            counts_as=canonical(parts.value_at(dearest, path)),
        )
        for path, late in open_.late.items()
    )  # fmt: skip


def _source(source: object, before: Mapping[str, Any]) -> parts.Source:
    """Raises LateRefused where no earlier step of the kind has the name."""
    match source:
        case agents.FromReceipt(step=step, path=path) if isinstance(before.get(step), agents.Step):
            return parts.Source(kind=parts.SourceKind.RECEIPT, step=step, path=plain(path))
        case agents.FromSignal(step=step, path=path) if isinstance(before.get(step), agents.Signal):
            return parts.Source(kind=parts.SourceKind.SIGNAL, step=step, path=plain(path))
        case agents.FromChild(step=step, run=run, path=path) if _starts(before.get(step), run):
            return parts.Source(kind=parts.SourceKind.CHILD, step=step, run=run, path=plain(path))
        case agents.FromReading(tool=tool, arguments=arguments, path=path):
            text = canonical(dict(arguments))
            return parts.Source(kind=parts.SourceKind.READING, tool=tool, arguments=text, path=plain(path))
    raise LateRefused(f"no earlier step of the plan gives what is asked of it: {source!r}")


def _starts(step: object, run: str) -> bool:
    return isinstance(step, agents.Children) and any(child.name == run for child in step.runs)
