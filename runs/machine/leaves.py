"""The values of canonical JSON text one by one, each with its path; which are too long to be read at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Final

import msgspec

from runs.machine import state as s

#: Up to so many bytes of values a plan is shown whole.
WHOLE: Final = 64 * 1024
#: What is shown of each end of an over-long value, in bytes.
END: Final = 2 * 1024


class Number(str):
    """A JSON number in its stored digits."""


def leaves(text: str) -> Iterator[tuple[str, object]]:
    """Path and value, in the order of the text; an empty list or object is a value. Raises ValueError: no JSON."""
    yield from _below("", json.loads(text, parse_int=Number, parse_float=Number))


def _below(path: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _below(f"{path}.{name}" if path else name, item)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _below(f"{path}[{index}]", item)
    else:
        yield path or "$", value


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """One argument of a plan. `number` counts from 1 over all steps: with the plan's digest it names the value."""

    number: int
    step: str
    path: str
    text: str

    @property
    def size(self) -> int:
        return len(self.text.encode(errors="surrogatepass"))

    @property
    def hash(self) -> str:
        return f"sha256:{hashlib.sha256(self.text.encode(errors='surrogatepass')).hexdigest()}"

    @property
    def first(self) -> str:
        """Its beginning, at most END bytes."""
        return self.text.encode(errors="surrogatepass")[:END].decode(errors="ignore")

    @property
    def last(self) -> str:
        """Its end, at most END bytes."""
        return self.text.encode(errors="surrogatepass")[-END:].decode(errors="ignore")


def values_of(plan: s.PlanDocument) -> tuple[Value, ...]:
    """Every argument of the plan's steps that is a value by now, in order."""
    found = (
        (step.name, path, value if isinstance(value, str) else json.dumps(value))
        for step in plan.steps
        if step.wait is None
        for path, value in leaves(step.arguments)
    )
    return tuple(
        Value(number=number, step=step, path=path, text=str(text))
        for number, (step, path, text) in enumerate(found, 1)
    )


def overlong(plan: s.PlanDocument) -> tuple[Value, ...]:
    """The values that a review shows by their ends alone; none while all of the plan's fit into WHOLE."""
    if sum(len(step.arguments) for step in plan.steps) * 4 <= WHOLE:
        return ()  # nearly always, and cheap to tell
    values = values_of(plan)
    if sum(value.size for value in values) <= WHOLE:
        return ()
    return tuple(value for value in values if value.size > 2 * END)


def to_open(state: s.RunState, plan: s.PlanVersion) -> tuple[Value, ...]:
    """The over-long values of the steps that approving would let happen: each approver opens them first."""
    done = {step.name for step in plan.plan.steps if _stands(state, step)}
    return tuple(value for value in overlong(plan.plan) if value.step not in done)


def _stands(state: s.RunState, step: s.PlanStep) -> bool:
    held = state.standing(step.system, step.operation_id)
    confirmed = held is not None and held.status is s.EffectStatus.CONFIRMED
    return confirmed or state.inherited_by(step.system, step.operation_id) is not None
