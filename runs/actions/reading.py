"""Having what a run knows read once more, at a person's word."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from accounts.models import User
from accounts.rights import Right
from runs.actions.frame import Done, by_person
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s

Found = tuple[e.ObservationReread, e.ArtifactKept | None]


def reread_observations(*, person: User, run_id: str, found: Sequence[Found], submission: UUID) -> Done:
    """Store what was read now, outside every transaction. It moves nothing. Raises Refused where the run is over."""

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        return tuple(
            event
            for read, kept in found
            for event in (*decide.reread(state, read), *decide.kept(state, kept))
        )

    return by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action="reread", submission=submission,
        events_of=events_of,
    )  # fmt: skip
