"""What a reading that a person asked for does to an observation. Used by `evolve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.references import same

if TYPE_CHECKING:
    from collections.abc import Callable

    from runs.machine.draft import Draft


def _reread(draft: Draft, event: e.ObservationReread, recorded: e.Recorded) -> None:
    """As it was: it counts as read now. Otherwise the newer value stands beside the one that the run rests on."""
    key = (event.tool, e.text_of(event.arguments))
    if key not in draft.observations:
        return
    known, value = draft.observations[key], e.text_of(event.value)
    if event.version == known.version and same(known.value, value):
        draft.observations[key] = replace(
            known, observed_at=event.observed_at, half_life=event.half_life, seq=recorded.seq, reread=None
        )
        return
    found = s.Reread(
        value=value, version=event.version, seq=recorded.seq, at=event.observed_at, by=recorded.actor.name
    )
    draft.observations[key] = replace(known, reread=found)


HANDLERS: dict[type[e.Event], Callable[[Draft, Any, e.Recorded], None]] = {e.ObservationReread: _reread}
