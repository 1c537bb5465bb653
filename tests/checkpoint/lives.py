"""Whole lives of runs, and what becomes of one that goes on from its checkpoint alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from uuid import uuid4

from django.apps import apps
from django.db import connection

from approvals.models import Request
from runs import actions, checkpoints, engine
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine import state as s
from runs.models import CLOSED, Run
from tests.outside import World
from tests.people import House, assert_replays

Pass = Callable[[float], None]
#: How often the people and clocks of a life do what comes next before it has to be over.
ROUNDS = 40


@dataclass
class Living:
    """Who does what is next, with every run that is open, until the first one is over."""

    house: House
    world: World
    let_pass: Pass
    undo_after: int = (
        0  #: the operator ends the run, and wants undone what it did, once so many effects stand
    )
    seen: list[s.State] = field(default_factory=list)

    def on(self, run_id: str) -> s.RunState:
        """To the end. The log re-reduced equals the rows after every round."""
        for _ in range(ROUNDS):
            for run in Run.objects.exclude(state__in=CLOSED).order_by("created_at"):
                engine.advance(run.pk)
                self._people(Run.objects.get(pk=run.pk))
                self.seen.append(assert_replays(run).state)
            state = load(run_id)
            if state.state in s.TERMINAL:
                return state
            self.let_pass(3.0)
            actions.tell_untold(100)  # as the sweep does
        raise AssertionError(f"{state.state} {state.reasons}")

    def _people(self, run: Run) -> None:
        state = load(run.pk)
        stands = sum(x.status is s.EffectStatus.CONFIRMED for x in state.effects.values())
        if (
            self.undo_after
            and stands >= self.undo_after
            and not state.cancel_requested
            and not state.identity.parent
        ):
            self.house.cancel(run, undo=True)
        elif run.state == "waiting_approval":
            self._approve(run)
        elif state.wait and state.wait.signal and not any(x.name == state.wait.signal for x in state.signals):
            self.house.answer(run, state.wait.signal)

    def _approve(self, run: Run) -> None:
        asked = Request.objects.filter(subject__startswith=f"{run.pk}:", state="pending").first()
        if asked is None:
            actions.renew_request(
                person=self.house.operator, run_id=run.pk, request=uuid4(), submission=uuid4()
            )
        self.house.decide(run, self.house.approver)


@dataclass(frozen=True)
class Whole:
    """A life that nothing disturbed: its file as of each of its events, and what it came to."""

    run: str
    files: dict[int, bytes]
    state: s.RunState
    executed: tuple[tuple[str, str, Any], ...]
    receipts: dict[str, int]  #: key -> the event that made it certain

    def outside_at(self, seq: int, *, in_flight: bool) -> list[tuple[str, str, Any]]:
        """What was outside at an event; with what had been sent and not yet answered, or without it."""
        sent = {x.key: x.intent_seq for x in self.state.effects.values()}
        until = sent if in_flight else self.receipts
        return [x for x in self.executed if until.get(x[1], 0) <= seq]


def whole(run: Run, living: Living) -> Whole:
    """Live it, and write its checkpoint as of every event."""
    state = living.on(run.pk)
    files = {seq: checkpoints.write(run.pk, until=seq).text.encode() for seq in _committed(run.pk)}
    receipts = {x.key: x.receipt.seq for x in state.effects.values() if x.receipt}
    return Whole(run.pk, files, state, tuple(living.world.executed), receipts)


def _committed(run_id: str) -> list[int]:
    """The last event of each transaction: where a process can die."""
    recorded = list(log(run_id))
    return [a.seq for a, b in pairwise(recorded) if a.at != b.at] + [recorded[-1].seq]


def came_to(state: s.RunState, world: World) -> dict[str, Any]:
    """What counts of an end: state, what was done and is owed, which effects stand, and what happened outside."""
    return {
        "state": state.state, "done": set(state.done), "goals": [x.text for x in state.goals],
        "owed": [(x.text, x.open) for x in state.obligations],
        "effects": {x.operation_id: (x.key, x.status, x.arguments) for x in state.effects.values()},
        "steps": state.plan.plan.steps if state.plan else (),
        "children": {x.run: x.ended for x in state.children.values()},
        "outside": Counter((i, k) for i, k, _ in world.executed),
    }  # fmt: skip


def empty() -> None:
    """The database of before is gone: only the people and what they may do are there."""
    tables = [
        m._meta.db_table
        for app in ("runs", "approvals")
        for m in apps.get_app_config(app).get_models()
        if m._meta.model_name not in ("agent",)
    ]
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("; ".join(f"DELETE FROM {table}" for table in tables))
        cursor.execute("SET session_replication_role = DEFAULT")


def types(run_id: str) -> list[type[e.Event]]:
    """What happened, by type."""
    return [type(r.event) for r in log(run_id)]
