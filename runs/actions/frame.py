"""The frame of a person's action: the fence, the right, the lock, once per submission, woken after commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from accounts.fence import fence_shared
from accounts.models import User
from accounts.rights import Right, holders, may
from accounts.submissions import alone
from runs import access
from runs.actions.writing import write
from runs.clock import database_now
from runs.ledger import load
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.transitions import Refused
from runs.models import Run, Submission
from runs.outbox import wake_on_commit


@dataclass(frozen=True, kw_only=True)
class Done:
    """What an action did: the run's seq after it, and whether this very form had done it before."""

    run: str
    seq: int
    repeated: bool = False


#: The author of what nobody decides and no worker finds.
SWEEP = e.Actor(e.ActorKind.SYSTEM, "sweep", "sweep")


def person_actor(person: User) -> e.Actor:
    """A person as the author of an event."""
    return e.Actor(e.ActorKind.PERSON, str(person.pk), person.shown_name)


def locked(person: User, run_id: str, right: Right) -> tuple[Run, s.RunState, datetime]:
    """Inside a transaction: the fence, the person's right, the run's row lock, its state, and the time.

    Raises access.RunNotFound, access.NotPermitted. Rights are read after the fence, so one that was removed
    a moment ago is gone.
    """
    run = locked_row(person, run_id, right)
    return run, load(run_id), database_now()


def locked_row(person: User, run_id: str, right: Right) -> Run:
    """The same without the run's log, which such an action does not look into."""
    run = access.run_for(person, run_id)
    fence_shared(run.tenant_id)
    run = access.run_for(person, run_id, right)
    Run.objects.select_for_update(of=("self",)).filter(pk=run_id).first()
    return run


def locked_by_system(run_id: str) -> tuple[Run, datetime]:
    """Inside a transaction, for what no person does: the fence, the run's row lock, and the time."""
    fence_shared(Run.objects.values_list("tenant_id", flat=True).get(pk=run_id))
    run = Run.objects.select_for_update(of=("self",)).select_related("agent").get(pk=run_id)
    return run, database_now()


def people_with(run: Run, rights: Sequence[Right]) -> list[User]:
    """The people who hold one of these rights on the run, now, by name."""
    found = {person.pk: person for right in rights for person in holders(right, run)}
    return sorted(found.values(), key=lambda person: (person.shown_name.casefold(), str(person.pk)))


def repeated(submission: UUID, person: User, action: str) -> Done | None:
    """What this very form did before. Raises Refused where its id belongs to another action."""
    first = first_use(submission, person, action)
    return Done(run=first.run_id or "", seq=first.seq or 0, repeated=True) if first else None


def first_use(submission: UUID, person: User, action: str) -> Submission | None:
    """The record of what this very form did before. Raises Refused where its id belongs to another action."""
    alone(submission)
    first = Submission.objects.filter(pk=submission).first()
    if first and (first.person_id, first.action) != (person.pk, action):
        raise Refused(None, "a form's id is good for one action")
    return first


def by_person(
    *,
    person: User,
    run_id: str,
    right: Right,
    action: str,
    submission: UUID,
    events_of: Callable[[s.RunState, datetime], Sequence[e.Event]],
) -> Done:
    """The frame of a person's action: once per submission, decided on what is locked, woken after commit."""
    with transaction.atomic():
        run, state, now = locked(person, run_id, right)
        if first := repeated(submission, person, action):
            return first
        new = write(state, events_of(state, now), run=run, actor=person_actor(person), now=now)
        Submission.objects.create(
            id=submission, tenant_id=run.tenant_id, run=run, person=person, action=action, seq=new.seq, at=now
        )
        wake_on_commit(run_id=run_id, agent=run.agent.name, version=run.agent_version)
    return Done(run=run_id, seq=new.seq)


def beside(
    *,
    person: User,
    run_id: str,
    action: str,
    submission: UUID,
    act: Callable[[Run, datetime], dict[str, str]],
    rights: Sequence[Right] = (),
) -> Submission:
    """The frame of what people do beside a run: no event, and no version that another's form was made for.

    Whoever sees the run may, where no `rights` are asked; else whoever holds one of them. Returns the record of the
    form, of this send or the first one. Raises access.RunNotFound, access.NotPermitted, Refused.
    """
    with transaction.atomic():
        run = locked_row(person, run_id, Right.VIEW_RUNS)
        if rights and not any(may(person, right, run) for right in rights):
            run = access.run_for(person, run_id, rights[0])
        if first := first_use(submission, person, action):
            return first
        now = database_now()
        return Submission.objects.create(
            id=submission, tenant_id=run.tenant_id, run=run, person=person, action=action, result=act(run, now),
            at=now,
        )  # fmt: skip
