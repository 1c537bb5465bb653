"""What people tell each other about who works on a run: claim it, release it, assign it. No event; it moves no run."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from accounts.models import User
from accounts.rights import Right
from runs.actions.frame import beside, people_with
from runs.machine.decide import ConclusionRefused
from runs.models import Run, Submission, Working, WorkingKind
from runs.working import lapses, workers_of

CLAIM: Final = "claim"
RELEASE: Final = "release"
ASSIGN: Final = "assign"
#: Who holds one of these on a run may be asked to work on it, and may ask.
ASSIGNING: Final = (Right.OPERATE_RUNS, Right.APPROVE_PLANS)
#: A claim is renewed by each page that its person opens, and written at most so often.
_RENEWED_EVERY: Final = 15


class Worked(StrEnum):
    """What a form about who works on a run did; the `outcome` of its record."""

    CLAIMED = "claimed"
    TAKEN_OVER = "taken_over"  #: from the `name` of the record
    YOURS = "yours"  #: it was claimed before, and is renewed
    HELD = "held"  #: somebody else works on it, by the `name` of the record: nothing was done
    RELEASED = "released"
    NOT_YOURS = "not_yours"  #: there was no claim of this person: nothing was done
    ASSIGNED = "assigned"  #: to the `name` of the record
    UNASSIGNED = "unassigned"
    SAME = "same"  #: it was so before: nothing was done


Result = dict[str, str]


def assignable(run: Run) -> list[User]:
    """The people to whom the run can be assigned, by name."""
    return people_with(run, ASSIGNING)


def claim_run(*, person: User, run_id: str, submission: UUID, over: bool = False) -> Submission:
    """Say that this person works on the run. Another's claim that has not lapsed stays, unless it is taken `over`.

    Whoever sees the run may. Returns the record of the form, whose result says what it did (`Worked`). Raises
    access.RunNotFound, Refused.
    """
    return beside(
        person=person, run_id=run_id, action=CLAIM, submission=submission,
        act=lambda run, now: _claim(person, run, now, over=over),
    )  # fmt: skip


def _claim(person: User, run: Run, now: datetime, *, over: bool) -> Result:
    found = workers_of(run.pk, now).claim
    if found and found.person_id == person.pk:
        _renew(found, now)
        return {"outcome": Worked.YOURS}
    if found and not over:
        return {"outcome": Worked.HELD, "name": found.person.shown_name}
    _end(run, WorkingKind.CLAIM, now)
    _begin(run, WorkingKind.CLAIM, person=person, by=person, now=now)
    if found:
        return {"outcome": Worked.TAKEN_OVER, "name": found.person.shown_name}
    return {"outcome": Worked.CLAIMED}


def release_run(*, person: User, run_id: str, submission: UUID) -> Submission:
    """Say that this person does not work on the run any more. Another's claim stays. Otherwise as `claim_run`."""
    return beside(
        person=person, run_id=run_id, action=RELEASE, submission=submission,
        act=lambda run, now: _release(person, run, now),
    )  # fmt: skip


def _release(person: User, run: Run, now: datetime) -> Result:
    found = workers_of(run.pk, now).claim
    if found and found.person_id != person.pk:
        return {"outcome": Worked.HELD, "name": found.person.shown_name}
    if found is None:
        return {"outcome": Worked.NOT_YOURS}
    _end(run, WorkingKind.CLAIM, now)
    return {"outcome": Worked.RELEASED}


def assign_run(*, person: User, run_id: str, to: User | None, submission: UUID) -> Submission:
    """Ask a person to work on the run, in place of whoever was asked before; None: nobody.

    It takes a right of `ASSIGNING`. Raises access.NotPermitted, ConclusionRefused where that person holds none; else as
    `claim_run`.
    """
    return beside(
        person=person, run_id=run_id, action=ASSIGN, submission=submission, rights=ASSIGNING,
        act=lambda run, now: _assign(person, run, to, now),
    )  # fmt: skip


def _assign(person: User, run: Run, to: User | None, now: datetime) -> Result:
    if to is not None and to not in assignable(run):
        raise ConclusionRefused("assignee_may_not")
    found = workers_of(run.pk, now).assignment
    if (found.person_id if found else None) == (to.pk if to else None):
        return {"outcome": Worked.SAME, "name": to.shown_name if to else ""}
    _end(run, WorkingKind.ASSIGNMENT, now)
    if to is None:
        return {"outcome": Worked.UNASSIGNED}
    _begin(run, WorkingKind.ASSIGNMENT, person=to, by=person, now=now)
    return {"outcome": Worked.ASSIGNED, "name": to.shown_name}


def renew_claim(*, person: User, run_id: str, now: datetime) -> None:
    """The person did something about the run: their claim, where they have one that has not lapsed, lasts from now."""
    found = workers_of(run_id, now).claim
    if found and found.person_id == person.pk:
        _renew(found, now)


def renew_seen(claim: Working, now: datetime) -> None:
    """The same for a claim that a page has read already; not written where that was done a moment ago."""
    if now - claim.active_at > (lapses(claim) - claim.active_at) / _RENEWED_EVERY:
        _renew(claim, now)


def _renew(claim: Working, now: datetime) -> None:
    Working.objects.filter(pk=claim.pk, ended_at__isnull=True, active_at__lt=now).update(active_at=now)


def _begin(run: Run, kind: WorkingKind, *, person: User, by: User, now: datetime) -> None:
    Working.objects.create(
        tenant_id=run.tenant_id, run=run, kind=kind, person=person, by=by, at=now, active_at=now
    )


def _end(run: Run, kind: WorkingKind, now: datetime) -> None:
    """End what is open; a claim that has lapsed ended when it did. The caller holds the run's row."""
    for row in Working.objects.filter(run=run, kind=kind, ended_at__isnull=True):
        over = lapses(row) if kind is WorkingKind.CLAIM else now
        Working.objects.filter(pk=row.pk).update(ended_at=min(over, max(now, row.active_at)))
