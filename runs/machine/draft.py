"""A state under construction, and how a module says which of its functions reduces which event type."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from operator import attrgetter
from typing import Any

from msgspec.structs import astuple

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.waits import Child, Signal, Wait

_FIELDS = s.RunState.__struct_fields__
_parts = attrgetter(*_FIELDS)


class Draft:
    """A state under construction: the fields of RunState, its mappings copied and open to change."""

    seq: int
    at: datetime
    state: s.State
    identity: s.Identity
    goals: tuple[s.Goal, ...]
    constraints: tuple[s.Constraint, ...]
    direction: s.Direction
    before: s.State | None
    since: datetime | None
    reasons: tuple[e.Reason, ...]
    observations: dict[tuple[str, str], s.Observation]
    obligations: tuple[s.Obligation, ...]
    plans: tuple[s.PlanVersion, ...]
    requests: tuple[s.Request, ...]
    effects: dict[int, s.Effect]
    done: dict[str, int]
    rounds: dict[str, int]
    keys: dict[str, str]
    produced: dict[str, str]
    artifacts: dict[int, s.Artifact]
    advice: tuple[str, ...]
    inherited: tuple[e.Inherited, ...]
    successor: str
    history_lost: bool
    revalidation: s.Revalidation | None
    returned_seq: int
    cancel_requested: bool
    undo_requested: bool
    cancelled_by: e.Actor | None
    hands_to: e.Actor | None
    undone: tuple[e.Inherited, ...]
    waits: dict[str, Wait]
    signals: tuple[Signal, ...]
    children: dict[str, Child]
    retry_at: datetime | None
    failures: int
    replans: int
    reads: int
    blocked: s.Blocked | None
    taken_in: s.TakenIn | None
    lendings: tuple[s.Lending, ...]
    checked: s.Revalidation | None
    projected: str
    constrained_seq: int

    def __init__(self, state: s.RunState | None) -> None:
        self.started = state is not None
        if state is not None:
            # All fields at once: this is done for every event that is written.
            values = zip(_FIELDS, astuple(state), strict=True)
            self.__dict__.update({n: dict(v) if type(v) is dict else v for n, v in values})

    def freeze(self) -> s.RunState:
        """The state as of the last event taken."""
        return s.RunState(**dict(zip(_FIELDS, _parts(self), strict=True)))

    def begin(self) -> None:
        """Fresh containers, never the shared defaults of the class."""
        self.observations, self.effects, self.done, self.produced = {}, {}, {}, {}
        self.rounds, self.keys, self.artifacts, self.waits, self.children = {}, {}, {}, {}, {}
        self.signals, self.undone, self.undo_requested = (), (), False
        self.reasons, self.obligations, self.plans, self.requests, self.advice = (), (), (), (), ()
        self.direction, self.before, self.since, self.revalidation = s.Direction.FORWARD, None, None, None
        self.returned_seq = self.failures = self.replans = self.reads = self.constrained_seq = 0
        self.cancel_requested, self.cancelled_by, self.hands_to, self.retry_at = False, None, None, None
        self.inherited, self.successor, self.history_lost, self.blocked = (), "", False, None
        self.taken_in = None
        self.lendings, self.checked, self.projected = (), None, ""


type Handler = Callable[[Draft, Any, e.Recorded], None]


class Handlers(dict[type[e.Event], Handler]):
    """What each event type does to the parts of a state."""

    def on(self, event_type: type[e.Event]) -> Callable[[Handler], Handler]:
        """Register the function for an event type."""

        def register(handler: Handler) -> Handler:
            self[event_type] = handler
            return handler

        return register
