"""What bringing an installation up consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from console.embedded.process import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """A step that is done when it ends: a command whose output the person sees, or a function."""

    name: str
    argv: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    done: str = "done"
    call: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Together:
    """Programs that need nothing of each other: they start at the same time."""

    programs: Sequence[Program]
    done: str = "run"

    @property
    def name(self) -> str:
        return ", ".join(program.name for program in self.programs)


Step = Together | Once
