"""A worker is killed by SIGKILL at every point, with every kind of tool: nothing happens twice, nothing is lost."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from accounts.models import Membership, Tenant, User
from accounts.rights import Right, grant_right
from runs import actions, agents, crash, recovery
from runs.clock import database_now
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine.state import TERMINAL, EffectStatus, RunState, State
from runs.models import Agent, Claim, Run
from tests.fixtures.processes import Workers
from tests.matrix.agent import KINDS
from tests.matrix.outside import Outside, serving
from tests.people import assert_replays

POINTS = (
    crash.CLAIMED,
    "before ObservationRecorded",
    "after ObservationRecorded",
    "before PlanProposed",
    "after PlanProposed",
    "before RevalidationPassed",
    "before EffectIntended",
    "after EffectIntended",
    crash.BEFORE_CALL,
    crash.AFTER_CALL,
    "before ReceiptStored",
    "after ReceiptStored",
    "before OutcomeUnknown",
    "after OutcomeUnknown",
    "before EffectQueried",
    "after EffectQueried",
    "before RunSucceeded",
    "after RunSucceeded",
)
FATES = ("done", "not_done", "late")
PATIENCE_SECONDS = 150  #: for the short matrix; the whole one gets as much for each cell


@dataclass(frozen=True)
class Case:
    """One cell of the matrix, and its run."""

    kind: str
    point: str
    fate: str
    run: Run

    @property
    def operation(self) -> str:
        return f"do:{self.run.start_key}"

    def __str__(self) -> str:
        return f"{self.kind} killed {self.point}, effect {self.fate}: {self.run.pk}"


def cells() -> Iterator[tuple[str, str, str]]:
    """Each point with each kind once, the outcomes rotated. MATRIX=all: all of them, MATRIX=points: each point once."""
    if os.environ.get("MATRIX") == "all":
        yield from itertools.product(KINDS, POINTS, FATES)
        return
    if os.environ.get("MATRIX") == "points":
        for number, point in enumerate(POINTS):
            yield KINDS[number % len(KINDS)], point, FATES[number % len(FATES)]
        return
    for number, (kind, point) in enumerate(itertools.product(KINDS, POINTS)):
        yield kind, point, FATES[(number + number // len(POINTS)) % len(FATES)]


@pytest.fixture
def outside() -> Iterator[Outside]:
    with serving() as served:
        yield served


@pytest.fixture
def cases(live_db: object, settings: Settings, outside: Outside) -> list[Case]:
    """A started run for each cell, with the fate of its first call."""
    settings.HANDOFF_AGENTS = ["tests.matrix.agent:AGENT"]
    # Seventy deaths keep a worker from announcing itself in time; that is another test's matter.
    settings.HANDOFF_DURATIONS = replace(settings.HANDOFF_DURATIONS, version_grace=timedelta(minutes=2))
    agents.registered.cache_clear()
    tenant = Tenant.objects.create(slug="matrix", name="Matrix")
    person = User.objects.create_user(username="starter")
    Membership.objects.create(user=person, tenant=tenant)
    agent = Agent.objects.create(tenant=tenant, name="matrix", title="Matrix")
    grant_right(to=person, right=Right.START_RUNS, obj=agent, actor=None, now=database_now())
    made = []
    for number, (kind, point, fate) in enumerate(cells()):
        run = actions.start_run(
            agent=agent, version="1", goal=f"{kind} {point} {fate}", input={"kind": kind, "thing": f"t{number}"},
            start_key=f"t{number}", creator=person, principal=person,
        )  # fmt: skip
        case = Case(kind, point, fate, run)
        outside.fates[case.operation] = fate
        made.append(case)
    return made


def arm(cases: list[Case], folder: Path) -> None:
    folder.mkdir()
    for case in cases:
        (folder / f"{case.run.pk}@{case.point}").touch()


def settled(state: RunState) -> bool:
    return state.state in TERMINAL or state.state is State.NEEDS_HUMAN


def all_settled(cases: list[Case]) -> dict[str, RunState]:
    """The runs' states once each has ended or waits for a person; fails at the deadline, naming those that do not."""
    deadline = time.monotonic() + PATIENCE_SECONDS * max(1, len(cases) / (len(KINDS) * len(POINTS)))
    while True:
        recovery.sweep()
        moving = Run.objects.exclude(state__in=[*TERMINAL, State.NEEDS_HUMAN]).values_list("pk", flat=True)
        if not moving:
            return {case.run.pk: load(case.run.pk) for case in cases}
        assert time.monotonic() < deadline, [str(c) for c in cases if c.run.pk in set(moving)]
        time.sleep(0.5)


def test_no_crash_repeats_or_loses_an_effect(
    cases: list[Case], workers: Workers, outside: Outside, tmp_path: Path
) -> None:
    armed = tmp_path / "armed"
    arm(cases, armed)
    environment = {
        "HANDOFF_AGENTS": "tests.matrix.agent:AGENT",
        "MATRIX_URL": outside.url,
        crash.VARIABLE: str(armed),
    }
    workers.start(environment=environment)

    states = all_settled(cases)

    wrong = [
        f"{case}: {problem}" for case in cases for problem in problems(case, states[case.run.pk], outside)
    ]
    assert not wrong, "\n".join(wrong)
    for case in cases:
        assert_replays(case.run)


def problems(case: Case, state: RunState, outside: Outside) -> Iterator[str]:
    """What must never be, whatever the cell."""
    executed = len(outside.found(case.operation))
    effect = state.effects.get(1)
    confirmed = effect is not None and effect.status is EffectStatus.CONFIRMED
    if executed > 1:
        yield f"executed {executed} times"
    if confirmed and executed != 1:
        yield f"confirmed, executed {executed} times"
    if state.state is State.SUCCEEDED and not confirmed:
        yield "succeeded without its effect"
    if state.state is State.NEEDS_HUMAN:
        yield from _human_problems(case, state)
    yield from _answer_problems(case)


def _human_problems(case: Case, state: RunState) -> Iterator[str]:
    """Only what cannot be known, or not be sent again safely, may stop for a person."""
    codes = [reason.code for reason in state.reasons]
    if codes != ["effect_unknown"]:
        yield f"stopped for {codes}"
    if case.kind in ("both", "key"):
        yield "stopped for a person although its key is honoured"


#: What the answer stored at a claim allows to come first after it.
FOLLOWS: dict[str, tuple[type[e.Event], ...]] = {
    "ask": (e.EffectQueried,),
    "settle": (e.OutcomeUnknown, e.EffectUnsent),
    "resend": (e.EffectSent, e.HumanNeeded),
}


def _answer_problems(case: Case) -> Iterator[str]:
    """The next safe action that was stored before each recovery is what then happened."""
    recorded = {r.seq: r for r in log(case.run.pk)}
    for claim in Claim.objects.filter(run=case.run):
        allowed = FOLLOWS.get(claim.answer["action"])
        first = recorded.get(claim.seq + 1)
        if allowed and first and not isinstance(first.event, allowed):
            yield f"said {claim.answer['action']}, did {type(first.event).__name__} at {first.seq}"
