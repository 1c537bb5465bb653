"""Moving runs to another version of their agent: one run, or many with the same words, each by its own event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from django.db import IntegrityError, transaction

from accounts.models import Tenant, User
from accounts.rights import Right
from runs import agents, versions
from runs.access import NotPermitted, RunNotFound
from runs.actions.frame import Done, by_person, repeated
from runs.clock import database_now
from runs.compatibility import Obstacle, obstacles
from runs.ledger import LogUnreadable
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.transitions import Refused
from runs.models import Submission

MOVE, MOVE_MANY = "move", "move_runs"


class MoveRefused(Exception):
    """That version cannot take the run over; nothing changed. `obstacles` says all that stands in the way."""

    def __init__(self, obstacles: tuple[Obstacle, ...]) -> None:
        self.obstacles = obstacles
        super().__init__("; ".join(f"{o.code} {o.subject}".strip() for o in obstacles))


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What became of each of many runs."""

    moved: tuple[str, ...]
    refused: Mapping[str, tuple[Obstacle, ...]]


def move_run(*, person: User, run_id: str, version: str, note: str, submission: UUID) -> Done:
    """Let another version of its agent go on with a run that waits. Raises MoveRefused with the reasons.

    What was approved stands where tools and policy are the same to that version; else it plans anew.
    """
    return _move(person, run_id, version, note, submission, MOVE)


def _move(person: User, run_id: str, version: str, note: str, submission: UUID, action: str) -> Done:
    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        code = agents.registered().get((state.identity.agent, version))
        if code is None:
            raise MoveRefused((Obstacle(code="version_missing", subject=version),))
        if stands_in_the_way := obstacles(state, code):
            raise MoveRefused(stands_in_the_way)
        return decide.moved(state, to=version, code=versions.recorded(code), note=note)

    return by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action=action, submission=submission,
        events_of=events_of,
    )  # fmt: skip


def move_runs(
    *, person: User, tenant: Tenant, runs: Sequence[str], version: str, note: str, submission: UUID
) -> Moved:
    """Move each of these runs, in a transaction of its own; those that cannot be moved stay as they are.

    The same form sent again gives the first result, and finishes what a first that was cut off had begun: it names the
    same runs. Raises Refused where the form's id belongs to another action.
    """
    if repeated(submission, person, MOVE_MANY):
        return moved_by(submission, person)
    refused = {run: why for run in runs if (why := _moved_or_why(person, run, version, note, submission))}
    kept = {run: [[o.code, o.subject, o.was, o.now] for o in why] for run, why in refused.items()}
    try:
        with transaction.atomic():
            Submission.objects.create(
                id=submission, tenant=tenant, person=person, action=MOVE_MANY, result={"refused": kept},
                at=database_now(),
            )  # fmt: skip
    except IntegrityError:
        repeated(submission, person, MOVE_MANY)
    return moved_by(submission, person)


def _moved_or_why(person: User, run: str, version: str, note: str, submission: UUID) -> tuple[Obstacle, ...]:
    """Move one of many; why not, where it could not be."""
    try:
        _move(person, run, version, note, uuid5(submission, run), _part_of(submission))
    except MoveRefused as error:
        return error.obstacles
    except LogUnreadable as error:
        return (Obstacle(code="unreadable", subject=str(error.seq), now=error.why),)
    except (NotPermitted, RunNotFound, Refused) as error:
        return (Obstacle(code="refused", now=str(error)),)
    return ()


def _part_of(submission: UUID) -> str:
    """The action under which each of many moves is kept."""
    return f"{MOVE} {submission}"


def moved_by(submission: UUID, person: User) -> Moved:
    """What a form that moved many did. Nothing for an id that this person's form never had."""
    done = Submission.objects.filter(person=person, action=_part_of(submission)).order_by("run_id")
    kept = Submission.objects.filter(pk=submission, person=person, action=MOVE_MANY).first()
    refused: Mapping[str, Any] = kept.result["refused"] if kept else {}
    return Moved(
        moved=tuple(str(run) for run in done.values_list("run_id", flat=True)),
        refused={run: tuple(_obstacle(parts) for parts in why) for run, why in refused.items()},
    )


def _obstacle(parts: Sequence[str]) -> Obstacle:
    code, subject, was, now = parts
    return Obstacle(code=code, subject=subject, was=was, now=now)
