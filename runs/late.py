"""Arguments that a planner leaves open: `Late` stands where the value will be, with its source and its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class FromReceipt:
    """From the receipt of an earlier step of the plan: its "reference", or "evidence" and on, as its tool shows it."""

    step: str
    path: str


@dataclass(frozen=True, kw_only=True)
class FromSignal:
    """From the answer that an earlier step of the plan waits for. Without a path the whole of it."""

    step: str
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class FromChild:
    """From a run that an earlier step of the plan starts, by its name there: "run", "ended" or "spent"."""

    step: str
    run: str
    path: str


@dataclass(frozen=True, kw_only=True)
class FromReading:
    """From what a reading tool says just before the send."""

    tool: str
    arguments: Mapping[str, Any]
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What the value may be. Numbers: `least` and `most`, or `one_of`. Text: `one_of`, or a `pattern` for the whole of
    it and/or the most characters, with an `example` that the plan is checked with.

    A decimal is a text of digits, as money is; it is compared exactly.
    """

    type: Literal["decimal", "integer", "text"] = "decimal"
    one_of: tuple[str | int, ...] = ()
    least: Decimal | int | None = None
    most: Decimal | int | None = None
    pattern: str = ""
    longest: int | None = None
    example: str = ""


@dataclass(frozen=True, kw_only=True)
class Late:
    """A value that only comes while the plan is carried out.

    The operation id must not depend on it. Budget, policy and approvers see the dearest value inside the bounds.
    """

    source: FromReceipt | FromSignal | FromChild | FromReading
    bounds: Bounds
