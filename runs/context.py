"""The planner's context, rebuilt from a run's state and its history under a budget of bytes. Pure.

Goal, input, constraints, what stands, open obligations, people's advice and current observations are never left out:
where these alone do not fit, the planner is not asked. What is left of the budget goes to artifacts and to history,
the newest first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Any, Final

from django.conf import settings

from runs import agents, history, planning
from runs.artifacts import ArtifactUnreadable
from runs.history import History
from runs.machine import state as s
from runs.machine.canonical import parse
from runs.machine.references import stands_for

#: The part of what the contract leaves that artifacts may take; history has the rest.
ARTIFACTS_PART: Final = 0.5
Fetch = Callable[[str], bytes]


class ContextTooLarge(Exception):
    """What a planner must be given does not fit into its budget: it was not asked, and nothing was left out."""

    def __init__(self, view: agents.View, budget: int) -> None:
        self.sizes = {f.name: _size(getattr(view, f.name)) for f in fields(view)}
        self.size, self.budget = size_of(view), budget
        largest = sorted(self.sizes.items(), key=lambda x: -x[1])[:3]
        super().__init__(
            f"What the planner has to know is {self.size} bytes, and its budget is {budget}: "
            + ", ".join(f"{name} {size}" for name, size in largest)
            + ". Nothing was left out and the planner was not asked. Raise the budget (context_budget of the agent, or "
            "HANDOFF_CONTEXT_BUDGET), or restart with less."
        )


def budget_of(agent: agents.Agent) -> int:
    """The bytes that a View of this agent may have."""
    budget: int = agent.context_budget or settings.HANDOFF_CONTEXT_BUDGET
    return budget


def rebuilt(state: s.RunState, now: datetime, *, history: History, budget: int, fetch: Fetch) -> agents.View:
    """The view of a planner, in at most `budget` bytes. `fetch` gives the bytes of an artifact by their hash.

    The same arguments always give the same view. Raises ContextTooLarge; ArtifactUnreadable where a current
    observation stands in the storage and cannot be read.
    """
    bare = planning.view_of(state, now)
    needed = replace(bare, observations=tuple(_whole(o, fetch) for o in bare.observations))
    room = budget - size_of(needed)
    if room < 0:
        raise ContextTooLarge(needed, budget)
    artifacts = tuple(_fitting(state, int(room * ARTIFACTS_PART), fetch))
    room -= sum(map(_cost, artifacts))
    return replace(needed, artifacts=artifacts, history=_told(history, room))


def size_of(view: agents.View) -> int:
    """The bytes of a view, written as JSON."""
    return _size(asdict(view))


def _size(value: Any) -> int:
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    return len(text.encode(errors="surrogatepass"))


def _plain(value: Any) -> Any:
    return asdict(value) if hasattr(value, "__dataclass_fields__") else str(value)


def _cost(value: Any) -> int:
    """What a value takes as one of a list: its own bytes, and those that part it from the next."""
    return _size(value) + 2


def _whole(seen: agents.Observed, fetch: Fetch) -> agents.Observed:
    """An observation whose value stands in the storage, with that value."""
    stands = stands_for(seen.value)
    return replace(seen, value=parse(fetch(stands.hash).decode())) if stands else seen


def _fitting(state: s.RunState, room: int, fetch: Fetch) -> Iterator[agents.Kept]:
    """The newest artifacts that fit. Of a result that does not fit whole, the name and hash may."""
    latest = {a.name: a.number for a in state.artifacts.values() if a.kind == "result"}
    for artifact in reversed(tuple(state.artifacts.values())):
        bare = _kept(artifact)
        with_content = latest.get(artifact.name) == artifact.number and _cost(bare) + artifact.size <= room
        kept = _with_content(bare, fetch) if with_content else bare
        kept = kept if _cost(kept) <= room else bare
        room -= _cost(kept)
        if room < 0:
            return
        yield kept


def _kept(artifact: s.Artifact) -> agents.Kept:
    return agents.Kept(
        number=artifact.number, name=artifact.name, kind=artifact.kind, media_type=artifact.media_type,
        size=artifact.size, hash=artifact.hash, about=artifact.about,
    )  # fmt: skip


def _with_content(bare: agents.Kept, fetch: Fetch) -> agents.Kept:
    """A result that was lost is shown without its content: the planner can make it again."""
    try:
        return replace(bare, content=fetch(bare.hash).decode())
    except ArtifactUnreadable:
        return bare


def _told(told: History, room: int) -> str:
    return "\n".join(history.newest(list(history.lines(told)), room, cost=_size))
