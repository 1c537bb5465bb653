"""One figure: what was measured, what it should be, and how both are shown and kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A measured value. `at_most` says on which side of the target is good; a target None is information only."""

    name: str
    value: float
    unit: str
    target: float | None = None
    at_most: bool = True

    @property
    def verdict(self) -> str:
        """`ok`, or `short` where the target is missed."""
        if self.target is None:
            return "ok"
        met = self.value <= self.target if self.at_most else self.value >= self.target
        return "ok" if met else "short"

    @property
    def line(self) -> str:
        """`name value unit target ok|short`."""
        target = "-" if self.target is None else f"{'<=' if self.at_most else '>='}{self.target:g}"
        return f"{self.name} {_shown(self.value)} {self.unit} {target} {self.verdict}"


def _shown(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def write(figures: Sequence[Figure], *, to: Path, at: datetime) -> None:
    """Keep the figures as JSON: when they were measured, and each with its verdict."""
    kept = [{**asdict(figure), "verdict": figure.verdict} for figure in figures]
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(json.dumps({"at": at.isoformat(), "figures": kept}, indent=2) + "\n")
