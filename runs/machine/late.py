"""Arguments that a plan leaves open: where each will come from, and the bounds that people saw.

A value outside its bounds is never sent: the plan that it was for ends, with the value and the bound as the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError

from runs.machine.canonical import canonical, parse
from runs.machine.events import Bound, Cause, text_of
from runs.machine.waits import Part

if TYPE_CHECKING:
    from runs.machine.state import Effect, PlanStep, PlanVersion

#: The cause of a plan that ends because a value did not come, or not within its bounds.
CAUSE = "late"
#: As much, because a constraint is not kept with the values that came.
BROKEN = "constraint_broken"
_DECIMAL = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,18})?")
LONGEST = 1000  #: characters of a value that is bound late
_MISSING = object()


class SourceKind(StrEnum):
    """What gives the value."""

    RECEIPT = "receipt"  #: the receipt of an earlier step
    SIGNAL = "signal"  #: the answer that an earlier step waited for
    CHILD = "child"  #: how a run ended that an earlier step started
    READING = "reading"  #: a reading tool, asked just before the send


class Source(Part, frozen=True, kw_only=True):
    """Where the value is taken from: `step` and, of a child, its `run`; of a reading `tool` and canonical `arguments`.

    `path` leads into what is there: names and places in lists, joined by dots.
    """

    kind: SourceKind
    path: str
    step: str = ""
    run: str = ""
    tool: str = ""
    arguments: str = ""


class Bounds(Part, frozen=True, kw_only=True):
    """What the value may be. Numbers are exact decimals, written as text; a value of `one_of` is compared as text."""

    type: str  #: decimal (a text of digits), integer, or text
    one_of: tuple[str, ...] = ()
    least: str | None = None
    most: str | None = None
    pattern: str = ""
    longest: int | None = None


class PlanLate(Part, frozen=True, kw_only=True):
    """One open argument of a step. `counts_as`: the dearest value it can have, as canonical text; what the plan costs,
    what its policy asks for and what an approver types are made with it.
    """

    path: str
    source: Source
    bounds: Bounds
    counts_as: str


class Bindings(Part, frozen=True, kw_only=True):
    """The open arguments of a step of a plan version as they came, or why they could not be taken."""

    plan_version: int
    step: PlanStep  #: with full arguments; the planned one where `refused` is set
    bound: tuple[Bound, ...] = ()
    refused: Cause | None = None


def written(bounds: Bounds) -> str:
    """The bounds in signs, the same in every language."""
    if bounds.one_of:
        return " | ".join(bounds.one_of)
    if bounds.type != "text":
        return f"{bounds.least} … {bounds.most}"
    parts = [f"/{bounds.pattern}/" if bounds.pattern else "", f"≤ {bounds.longest}"]
    return " ".join(filter(None, parts))


def within(bounds: Bounds, value: Any) -> bool:
    """Whether a JSON value is of the type and inside the bounds."""
    if not _typed(bounds.type, value):
        return False
    text = str(value)
    if bounds.one_of:
        return text in bounds.one_of
    if bounds.type != "text":
        return Decimal(bounds.least or 0) <= Decimal(text) <= Decimal(bounds.most or 0)
    return len(text) <= (bounds.longest or LONGEST) and (not bounds.pattern or matches(bounds.pattern, text))


def _typed(type_: str, value: Any) -> bool:
    match type_:
        case "decimal":
            return isinstance(value, str) and _DECIMAL.fullmatch(value) is not None
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case _:
            return isinstance(value, str) and len(value) <= LONGEST


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text is as the pattern says; in time that grows with the text and no faster.

    Raises ValueError for a pattern that is none.
    """
    try:
        _pattern(pattern).validate_python(text)
    except ValidationError:
        return False
    return True


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> TypeAdapter[str]:
    """Pydantic's own engine: Python's would try a hostile pattern for ever."""
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=rf"\A(?:{pattern})\z")])
    except SchemaError as error:
        raise ValueError(f"{pattern!r} is no pattern") from error


def value_at(value: Any, path: str) -> Any:
    """What stands at the path. Raises LookupError where nothing does."""
    for name in path.split(".") if path else ():
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isascii() and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise LookupError(path)
    return value


def merged(arguments: Any, values: Iterable[tuple[str, Any]]) -> Any:
    """The arguments with each value set at its path."""
    whole = dict(arguments)
    for path, value in values:
        name, _dot, rest = path.partition(".")
        whole[name] = merged(whole.get(name, {}), [(rest, value)]) if rest else value
    return whole


def without(arguments: Any, paths: Iterable[str]) -> Any:
    """The arguments without what stands at the paths."""
    whole = dict(arguments)
    for path in paths:
        name, _dot, rest = path.partition(".")
        if not rest:
            whole.pop(name, None)
        elif name in whole:
            whole[name] = without(whole[name], [rest])
    return whole


def counted(step: PlanStep) -> str:
    """The arguments of the step with the dearest value for each that is open, as canonical text."""
    if not step.late:
        return step.arguments
    return canonical(merged(parse(step.arguments), ((x.path, parse(x.counts_as)) for x in step.late)))


def same_intent(effect: Effect, step: PlanStep, plan: PlanVersion | None) -> bool:
    """Whether the effect is the step's: with the same arguments, or with those that were bound for this very step."""
    if not step.late:
        return effect.arguments_digest == step.arguments_digest
    return plan is not None and (effect.step, effect.plan_version) == (step.name, plan.version)


def cause(step: PlanStep, late: PlanLate, came: str) -> Cause:
    """Why the plan ends: which argument, what it had to be, and what came."""
    return Cause(what=CAUSE, subject=f"{step.name} {late.path}", was=written(late.bounds), now=came)


def outside(step: PlanStep, bound: Iterable[Bound]) -> Cause | None:
    """The first open argument that has no value, or one outside its bounds."""
    known = {x.path: text_of(x.value) for x in bound}
    for late in step.late:
        text = known.get(late.path, "")
        if not text or not within(late.bounds, parse(text)):
            return cause(step, late, text)
    return None
