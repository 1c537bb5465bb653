"""What a run waits for: timers, signals and child runs, as parts of a plan and of a run's state."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from runs.machine.events import Actor

#: A run that starts runs that start runs … ends here.
DEEPEST = 8
_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ID_LENGTH = 16


class Part(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of the parts of a state. Frozen parts hold no cycle, so the collector need not look at thousands of them."""


class WaitKind(StrEnum):
    """What ends a wait."""

    TIMER = "timer"
    SIGNAL = "signal"
    CHILDREN = "children"


class PlanChild(Part, frozen=True, kw_only=True):
    """A child run that a step starts. `input` is canonical text, `budget` a decimal: the child's limit."""

    name: str
    agent: str
    version: str
    goal: str
    input: str
    budget: str | None = None


class PlanWait(Part, frozen=True, kw_only=True):
    """What a waiting step waits for. A timer has `length` or `until`; for a signal `length` is how long at most."""

    kind: WaitKind
    length: timedelta | None = None
    until: datetime | None = None
    signal: str = ""
    children: tuple[PlanChild, ...] = ()


class Wait(Part, frozen=True, kw_only=True):
    """The wait of a step. It is over at `until` where that is set, or when what it waits for came."""

    step: str
    kind: WaitKind
    digest: str
    began_seq: int
    began_at: datetime
    signal: str = ""
    length: timedelta | None = None
    until: datetime | None = None
    ended_seq: int | None = None


class Signal(Part, frozen=True, kw_only=True):
    """An answer from outside the run; `taken_by` is the step whose wait it ended."""

    id: str
    name: str
    payload: str
    seq: int
    at: datetime
    by: Actor
    taken_by: str = ""


class Child(Part, frozen=True, kw_only=True):
    """A run that this one started for a step. `run` is its latest successor; `ended` the state it ended in; `work` the
    digest of what it was started for.
    """

    run: str
    step: str
    name: str
    agent: str
    goal: str
    budget: str | None
    seq: int
    ended: str = ""
    ended_seq: int | None = None
    spent: str = "0"
    work: str = ""

    @property
    def open(self) -> bool:
        """It has not ended yet."""
        return self.ended_seq is None


def work_of(agent: str, goal: str, input: str) -> str:
    """The digest of what a child run is started for: two of one are the same work, whatever they may spend."""
    return hashlib.sha256(msgspec.json.encode(["work/1", agent, goal, input])).hexdigest()


def child_id(parent: str, step: str, name: str, round_: int) -> str:
    """The id of a child run: the same however often the parent comes to the step, another one in each round."""
    parts = ["child/1", parent, step, name, *([str(round_)] if round_ else [])]
    made = hashlib.sha256(msgspec.json.encode(parts)).digest()
    return "run_" + "".join(_LETTERS[byte % len(_LETTERS)] for byte in made[:_ID_LENGTH])
