"""Lives of what a run owes: overdue while it waits, or handed to a person after a cancel and stated to be done."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from runs import actions
from runs.clock import database_now
from runs.models import Obligation, Run

if TYPE_CHECKING:
    from examples.lives.lives import People

#: How long the operator of a rehearsal has for what they wrote down.
BRIEFLY = timedelta(seconds=2)


def _owe(run: Run, people: People, due: timedelta) -> None:
    if not Obligation.objects.filter(run=run).exists():
        actions.open_obligation(
            person=people.operator, run_id=run.pk, text="Tell the auditor what was ordered.", to="the auditor",
            owner=people.operator, due_at=database_now() + due, submission=uuid4(),
        )  # fmt: skip


def owe_briefly(run: Run, people: People) -> None:
    """Something is owed soon, and nobody does it; what the sweep does is done at once."""
    _owe(run, people, BRIEFLY)
    actions.record_overdue(run.pk)


def overdue(run: Run) -> bool:
    """Whether it is recorded that something is overdue."""
    return Obligation.objects.filter(run=run, overdue_seq__isnull=False).exists()


def owe_and_cancel(run: Run, people: People) -> None:
    """The run is ended with something owed, which the approver is to keep."""
    _owe(run, people, timedelta(days=1))
    if not run.cancel_requested:
        actions.cancel_run(
            person=people.operator, run_id=run.pk, note="The order was withdrawn.", submission=uuid4(),
            owner=people.approver,
        )  # fmt: skip


def keep(run: Run, people: People) -> None:
    """Who wrote it down hands it to the approver, who does it and says so."""
    owed = Obligation.objects.get(run=run, discharged_seq__isnull=True)
    if owed.owner != str(people.approver.pk):
        actions.hand_on_obligation(
            person=people.operator, run_id=run.pk, obligation=owed.number, owner=people.approver,
            note="You know the auditor.", submission=uuid4(),
        )  # fmt: skip
    actions.attest_obligation(
        person=people.approver, run_id=run.pk, obligation=owed.number, how="I told the auditor on the phone.",
        reference="call of this morning", submission=uuid4(),
    )  # fmt: skip


def kept(run: Run) -> bool:
    """Whether nothing is owed any more."""
    return not Obligation.objects.filter(run=run, discharged_seq__isnull=True).exists()
