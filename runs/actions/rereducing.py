"""Re-reduction on a person's word: the run's rows made anew from its events. It moves no run, so it is no event."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from accounts.models import User
from accounts.rights import Right
from runs.actions.frame import Done, locked, repeated
from runs.models import Submission
from runs.rereduction import differences, rebuild

ACTION = "rereduce"


def rereduce_run(*, person: User, run_id: str, submission: UUID) -> Done:
    """Make the run's rows anew from its events, and keep what differed before with the person who had it done.

    Calls nothing outside. Raises access.RunNotFound, access.NotPermitted, ledger.LogUnreadable; nothing changed then.
    """
    with transaction.atomic():
        run, state, now = locked(person, run_id, Right.REREDUCE_RUNS)
        if first := repeated(submission, person, ACTION):
            return first
        before = differences(run_id)
        rebuild(run_id)
        Submission.objects.create(
            id=submission, tenant_id=run.tenant_id, run=run, person=person, action=ACTION, seq=state.seq,
            result={"differences": before}, at=now,
        )  # fmt: skip
    return Done(run=run_id, seq=state.seq)
