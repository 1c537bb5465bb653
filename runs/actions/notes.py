"""What people write about a run for whoever looks at it next. No event: it moves no run, and nothing rests on it."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from accounts.models import User
from runs.actions.frame import beside
from runs.actions.working import Result, renew_claim
from runs.models import Note, Run, Submission

NOTE: Final = "note"


def note_run(*, person: User, run_id: str, text: str, submission: UUID) -> Submission:
    """Keep a note on the run, also on one that is over or whose log cannot be read. Whoever sees the run may.

    It renews the person's claim. `text` has something in it and at most LONGEST_TEXT characters: the database holds
    both. Returns the record of the form. Raises access.RunNotFound, Refused.
    """

    def act(run: Run, now: datetime) -> Result:
        Note.objects.create(tenant_id=run.tenant_id, run=run, person=person, text=text, at=now)
        renew_claim(person=person, run_id=run.pk, now=now)
        return {"outcome": "noted"}

    return beside(person=person, run_id=run_id, action=NOTE, submission=submission, act=act)
