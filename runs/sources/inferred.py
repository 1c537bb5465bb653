"""Constraints that an agent read in a document and bound itself to. The run alone accepted them.

They stand until a person revokes them for the run: what they were read in may be read anew and says something else, but
a limit is never lost by that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from runs.agents import Agent
from runs.machine import state as s
from runs.machine.constraints import STANDS, SourceNow
from runs.machine.events import Term

KIND: Final = s.INFERRED


def terms(agent: Agent, *, tenant_id: UUID) -> tuple[Term, ...]:
    """None: a run infers its own."""
    return ()


def standing(
    agent: Agent | None, constraints: Iterable[s.Constraint], *, tenant_id: UUID
) -> dict[int, SourceNow]:
    """As they were accepted."""
    return {c.number: STANDS for c in constraints}
