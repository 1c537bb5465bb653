"""A person attaches a file to a run."""

from __future__ import annotations

from uuid import UUID

from accounts.models import User
from accounts.rights import Right
from runs import access, artifacts
from runs.actions.frame import Done, by_person
from runs.limits import LARGEST_FILE
from runs.machine import events as e


def attach_file(
    *, person: User, run_id: str, name: str, media_type: str, data: bytes, submission: UUID
) -> Done:
    """Keep the file and tie it to the run, which it does not move: what becomes of it is told by its events alone.

    Raises artifacts.ArtifactTooLarge, artifacts.ArtifactNotKept; then nothing was recorded.
    """
    run = access.run_for(person, run_id, Right.OPERATE_RUNS)
    if len(data) > LARGEST_FILE:
        raise artifacts.ArtifactTooLarge(len(data), LARGEST_FILE)
    row = artifacts.put(tenant_id=run.tenant_id, data=data, media_type=media_type)
    event = e.ArtifactKept(artifact=row.hash, name=name, kind="file", media_type=media_type, size=len(data))
    return by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action="attach", submission=submission,
        events_of=lambda state, now: (event,),
    )  # fmt: skip
