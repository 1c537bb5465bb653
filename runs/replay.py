"""Diagnostic replay: a run's log read event by event, what was recorded beside what the events amount to.

Reads events and writes nothing; `read_only` makes PostgreSQL refuse anything else. It has no code in common with
re-reduction or restart beyond the reducer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec
from django.db import connection, transaction

from runs.ledger import chained, log_begins
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.draft import Draft
from runs.machine.evolve import take
from runs.machine.transitions import Refused
from runs.models import Event

_COLUMNS = (
    "seq", "type", "version", "at", "state_before", "state_after", "body", "body_digest", "actor_kind", "actor_id",
    "actor_name", "previous", "hash",
)  # fmt: skip
#: What reading or reducing an event raises that this build lacks or that was damaged.
_UNREDUCED = (
    e.UnknownEvent, Refused, LookupError, ValueError, AttributeError, StopIteration, msgspec.MsgspecError,
)  # fmt: skip


type Shows = Callable[[int, str, int, str | None], str | None]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One event as it was stored. `recomputed` is None from the first event on that this build cannot reduce."""

    seq: int
    at: datetime
    type: str
    version: int
    actor: e.Actor
    body: str | None  #: None once erased
    recorded_before: str
    recorded: str  #: the run's state after the event, as it was written then
    whole: bool  #: body, digest, hash and the hash before agree
    recomputed: str | None = None

    @property
    def agrees(self) -> bool:
        """Whether recomputing gave the recorded state; True where nothing could be recomputed."""
        return self.recomputed in (None, self.recorded)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A whole log, with the states before and after one of its events where they can be recomputed."""

    steps: tuple[Step, ...]
    at: int
    before: s.RunState | None
    after: s.RunState | None
    event: e.Event | None
    unreadable: tuple[int, str] | None  #: seq and why, of the first event that cannot be reduced

    @property
    def step(self) -> Step:
        """The event looked at."""
        return self.steps[self.place]

    @property
    def place(self) -> int:
        """Which of the steps it is, from 0: a damaged log may lack some."""
        return next(n for n, x in enumerate(self.steps) if x.seq == self.at)

    @property
    def differs_from(self) -> int | None:
        """The first event after which the recorded state is not the recomputed one."""
        return next((x.seq for x in self.steps if not x.agrees), None)

    @property
    def broken_at(self) -> int | None:
        """The first event that is not as it was stored, or does not follow the one before it."""
        return next((x.seq for x in self.steps if not x.whole), None)


@contextmanager
def read_only() -> Iterator[None]:
    """A transaction in which PostgreSQL refuses every write, whatever the code in it does."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
        yield


def replay(run_id: str, *, seq: int | None = None, shows: Shows | None = None) -> Replay | None:
    """The log as of event `seq`, or of the last one before it, or of the last at all; None for an empty log.

    `shows` gives of each body what may be seen; whether it is whole is said of the stored one.
    """
    steps = tuple(_stored(run_id))
    if shows:
        steps = tuple(replace(x, body=shows(x.seq, x.type, x.version, x.body)) for x in steps)
    if not steps:
        return None
    at = max((x.seq for x in steps if seq is None or x.seq <= seq), default=steps[0].seq)
    fold = _Fold(at)
    unreadable = fold.all(steps)
    states = [state.value for state in fold.states]
    known = tuple(replace(x, recomputed=state) for x, state in zip(steps, states, strict=False))
    return Replay(
        steps=(*known, *steps[len(known) :]), at=at, before=fold.kept.get(at - 1), after=fold.kept.get(at),
        event=fold.event, unreadable=unreadable,
    )  # fmt: skip


class _Fold:
    """The reducer over a log, keeping the run's state after each event and the whole states around one."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.draft = Draft(None)
        self.states: list[s.State] = []
        self.kept: dict[int, s.RunState] = {}
        self.event: e.Event | None = None

    def all(self, steps: Sequence[Step]) -> tuple[int, str] | None:
        """Take every event; the seq of the first that cannot be taken and why, else None."""
        for step in steps:
            try:
                self._take(step)
            except _UNREDUCED as error:
                return step.seq, str(error) or type(error).__name__
        return None

    def _take(self, step: Step) -> None:
        if step.body is None:
            raise ValueError("its body was erased")
        event = e.decode(seq=step.seq, type_=step.type, version=step.version, body=step.body)
        self.event = event if step.seq == self.at else self.event
        take(self.draft, e.Recorded(step.seq, step.at, step.actor, event))
        self.states.append(self.draft.state)
        if step.seq in (self.at - 1, self.at):
            self.kept[step.seq] = self.draft.freeze()
            self.draft = Draft(self.kept[step.seq])


def _stored(run_id: str) -> Iterator[Step]:
    previous, expected = b"", 1
    first = True
    for row in Event.objects.filter(run_id=run_id).order_by("seq").values_list(*_COLUMNS):
        if first:
            (expected, previous), first = log_begins(row[0], row[1], row[6]), False
        whole = row[0] == expected and _whole(run_id, row, previous)
        yield Step(
            seq=row[0], type=row[1], version=row[2], at=row[3], recorded_before=row[4], recorded=row[5], body=row[6],
            actor=e.Actor(e.ActorKind(row[8]), row[9], row[10]), whole=whole,
        )  # fmt: skip
        previous, expected = bytes(row[12]), row[0] + 1


def _whole(run_id: str, row: tuple[Any, ...], previous: bytes) -> bool:
    body, digest = row[6], bytes(row[7])
    stored = body is None or hashlib.sha256(body.encode()).digest() == digest
    return stored and bytes(row[11]) == previous and chained(run_id, row) == bytes(row[12])
