"""What people do about what a run owes: write it down, hand it on, state that it is done; and that its time is over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from accounts.models import User
from accounts.rights import Right
from runs.actions.frame import SWEEP, Done, by_person, locked_by_system, people_with, person_actor
from runs.actions.writing import write
from runs.clock import database_now
from runs.ledger import load
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.models import Obligation, Run

#: Whoever holds one of these can do something about an obligation: state that it is done, or hand it on.
KEEPING = (Right.ATTEST_EFFECTS, Right.OPERATE_RUNS)


def keepers(run: Run) -> list[User]:
    """The people to whom an obligation of the run can be handed, by name."""
    return people_with(run, KEEPING)


def keeper_of(state: s.RunState, owner: User) -> e.Actor:
    """The person as an owner. Raises decide.ConclusionRefused for one who may do nothing about it."""
    if owner not in keepers(Run.objects.get(pk=state.identity.run)):
        raise decide.ConclusionRefused("owner_may_not")
    return person_actor(owner)


def open_obligation(
    *,
    person: User,
    run_id: str,
    text: str,
    to: str,
    owner: User,
    submission: UUID,
    due_at: datetime | None = None,
    by: str = "",
) -> Done:
    """Write down what the run owes: to whom, until when, and who keeps it; the receipt of step `by` discharges it.

    Raises Refused where the run is over or has no such step to come, decide.ConclusionRefused for an owner who may do
    nothing about it, or a time that is over.
    """

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        if due_at is not None and due_at <= now:
            raise decide.ConclusionRefused("due_over")
        return decide.owe(state, text=text, to=to, owner=keeper_of(state, owner), due_at=due_at, by=by)

    return by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action="owe", submission=submission,
        events_of=events_of,
    )  # fmt: skip


def attest_obligation(
    *, person: User, run_id: str, obligation: int, how: str, reference: str, submission: UUID
) -> Done:
    """State, as a person, that an obligation is done, also on a run that is over. It takes one person.

    Raises decide.ConclusionRefused with what is missing, Refused where nothing of that number is owed.
    """
    return by_person(
        person=person, run_id=run_id, right=Right.ATTEST_EFFECTS, action="attest_obligation", submission=submission,
        events_of=lambda state, now: decide.discharged(
            state, obligation, how=how, reference=reference, person=str(person.pk)
        ),
    )  # fmt: skip


def hand_on_obligation(
    *, person: User, run_id: str, obligation: int, owner: User, note: str, submission: UUID
) -> Done:
    """Let another person keep an obligation, also on a run that is over.

    Raises decide.ConclusionRefused for an owner who may do nothing about it or keeps it already, Refused where nothing
    of that number is owed.
    """
    return by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action="hand_on", submission=submission,
        events_of=lambda state, now: decide.handed_on(
            state, obligation, owner=keeper_of(state, owner), note=note
        ),
    )  # fmt: skip


def overdue_obligations(at_most: int) -> list[str]:
    """The runs that owe something whose time is over, where that is not recorded yet and nobody holds the run."""
    now = database_now()
    late = Obligation.objects.filter(discharged_seq__isnull=True, overdue_seq__isnull=True, due_at__lte=now)
    late = late.exclude(run__state=s.State.RESTARTED.value).exclude(run__lease_until__gt=now)
    return list(dict.fromkeys(late.order_by("due_at").values_list("run_id", flat=True)[:at_most]))


def record_overdue(run_id: str) -> None:
    """Record that the time of what a run owes is over; nothing where that was done, or a worker took the run meanwhile.

    Raises ledger.LogUnreadable.
    """
    with transaction.atomic():
        run, now = locked_by_system(run_id)
        if run.lease_until is not None and run.lease_until > now:
            return
        state = load(run_id)
        if events := decide.overdue(state, now):
            write(state, events, run=run, actor=SWEEP, now=now)
