"""A worker is killed while a run waits, starts another, is told of its end, and is undone: each is done once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from pytest_django import Settings

from accounts.models import Membership, Tenant, User
from accounts.rights import Right, grant_right
from console.celery import app
from runs import actions, agents, crash, recovery
from runs.clock import database_now
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine.safety import Action
from runs.machine.state import EffectStatus, RunState, State
from runs.models import Agent, Claim, Run
from tests.fixtures.processes import Workers
from tests.matrix.outside import Outside, serving
from tests.people import assert_replays
from tests.runs.shadow import FOLLOWS

#: While the run goes forward. Those of PART are points of the run that it starts.
FORWARD = (
    "before WaitBegan", "after WaitBegan", "before WaitEnded", "after WaitEnded", "before ChildStarted",
    "after ChildStarted", "before ChildEnded", "after ChildEnded",
)  # fmt: skip
#: While it is undone: the plan of that, each part of a send, and telling the run whose effect it was.
UNDO = (
    "before PlanProposed", "after PlanProposed", "before EffectIntended", "after EffectIntended",
    crash.BEFORE_CALL, crash.AFTER_CALL, "before ReceiptStored", "after ReceiptStored", "before RunCancelled",
    "after RunCancelled",
)  # fmt: skip
PART = ("before EffectCompensated", "after EffectCompensated")
FATES = ("done", "not_done", "late")
PATIENCE_SECONDS = 90


@dataclass(frozen=True)
class Case:
    """One point, the outcome of the first call that undoes, and the run."""

    point: str
    fate: str
    run: Run

    @property
    def thing(self) -> str:
        return self.run.start_key

    @property
    def part(self) -> Run:
        return Run.objects.get(parent=self.run)

    def __str__(self) -> str:
        return f"killed {self.point}, undoing {self.fate or 'answered'}: {self.run.pk}"


def cells() -> Iterator[tuple[str, str]]:
    """Each point once; MATRIX=all: where a call is under way, with each of its outcomes."""
    for number, point in enumerate((*FORWARD, *UNDO, *PART)):
        fates = FATES if point in (crash.BEFORE_CALL, crash.AFTER_CALL) else ("",)
        if os.environ.get("MATRIX") == "all":
            yield from ((point, fate) for fate in fates)
        else:
            yield point, fates[number % len(fates)]


@pytest.fixture
def outside() -> Iterator[Outside]:
    with serving() as served:
        yield served


@pytest.fixture
def person(live_db: object, settings: Settings) -> User:
    """Who starts the runs and ends them."""
    settings.HANDOFF_AGENTS = ["tests.matrix.agent:AGENT"]
    settings.HANDOFF_DURATIONS = replace(settings.HANDOFF_DURATIONS, version_grace=timedelta(minutes=2))
    agents.registered.cache_clear()
    tenant = Tenant.objects.create(slug="matrix", name="Matrix")
    made = User.objects.create_user(username="starter")
    Membership.objects.create(user=made, tenant=tenant)
    agent = Agent.objects.create(tenant=tenant, name="matrix", title="Matrix")
    for right in (Right.VIEW_RUNS, Right.START_RUNS, Right.OPERATE_RUNS, Right.CANCEL_RUNS):
        grant_right(to=made, right=right, obj=agent, actor=None, now=database_now())
    return made


@pytest.fixture
def cases(person: User) -> list[Case]:
    agent = Agent.objects.get(name="matrix")
    made = []
    for number, (point, fate) in enumerate(cells()):
        run = actions.start_run(
            agent=agent, version="1", goal=f"{point} {fate}", input={"whole": f"w{number}"},
            start_key=f"w{number}", creator=person, principal=person,
        )  # fmt: skip
        actions.signal_run(person=person, run_id=run.pk, name="go", payload="1", submission=uuid4())
        made.append(Case(point, fate, run))
    return made


def reached(cases: list[Case], there: Callable[[RunState], bool]) -> None:
    """Until all runs are there; fails at the deadline, naming those that are not.

    The worker sweeps, which may die of that too: what another process told in its stead is told.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        app.send_task("runs.sweep")
        left = [case for case in cases if not there(load(case.run.pk))]
        if not left:
            return
        assert time.monotonic() < deadline, [f"{c} is {load(c.run.pk).state}" for c in left]
        time.sleep(0.3)


def test_no_crash_repeats_or_loses_a_wait_a_child_or_an_undoing(
    cases: list[Case], person: User, workers: Workers, outside: Outside, tmp_path: Path
) -> None:
    for case in (case for case in cases if case.point in FORWARD):
        (tmp_path / f"{case.run.pk}@{case.point}").touch()
    environment = {
        "HANDOFF_AGENTS": "tests.matrix.agent:AGENT",
        "MATRIX_URL": outside.url,
        crash.VARIABLE: str(tmp_path),
    }
    workers.start(environment=environment)
    reached(cases, lambda state: state.wait is not None and state.wait.step == "hold")

    for case in cases:
        if case.point not in FORWARD:
            at = case.part if case.point in PART else case.run
            (tmp_path / f"{at.pk}@{case.point}").touch()
        if case.fate:
            outside.fates[f"undo:{case.thing}"] = case.fate
        actions.cancel_run(person=person, run_id=case.run.pk, note="", undo=True, submission=uuid4())
    reached(cases, lambda state: state.state is State.CANCELLED)
    reached(cases, lambda _: not list(tmp_path.glob("*@*")))  # and told whom it concerns
    recovery.sweep()  # tells what the last death left untold

    wrong = [f"{case}: {problem}" for case in cases for problem in problems(case, outside)]
    assert not wrong, "\n".join(wrong)


def problems(case: Case, outside: Outside) -> Iterator[str]:
    """What must never be, whatever the point."""
    for thing in (case.thing, f"{case.thing}-part"):
        for operation in (f"do:{thing}", f"undo:{thing}"):
            if (times := len(outside.found(operation))) != 1:
                yield f"{operation} executed {times} times"
    for run in (case.run, case.part):
        state = assert_replays(run)
        if (status := state.effects[1].status) is not EffectStatus.COMPENSATED:
            yield f"what {run.pk} did is {status}"
        yield from _answer_problems(run)
    began = [r.event.step for r in log(case.run.pk) if isinstance(r.event, e.WaitBegan)]
    if began != ["rest", "hear", "delegate", "hold"]:
        yield f"it began to wait {began}"


def _answer_problems(run: Run) -> Iterator[str]:
    """The next safe action that was stored before each recovery is what then happened."""
    recorded = {r.seq: r for r in log(run.pk)}
    for claim in Claim.objects.filter(run=run):
        first = recorded.get(claim.seq + 1)
        if first is None or first.actor.kind is not e.ActorKind.WORKER:
            continue
        if not isinstance(first.event, FOLLOWS.get(Action(claim.answer["action"]), ())):
            yield f"said {claim.answer['action']}, did {type(first.event).__name__} at {first.seq}"


#: Around the intent into which is bound what a person answered, and around the call with it.
BOUND = (
    "before WaitEnded", "after WaitEnded", "before EffectIntended", "after EffectIntended", crash.BEFORE_CALL,
    crash.AFTER_CALL,
)  # fmt: skip


def test_a_crash_between_binding_and_intent_sends_what_was_answered_once(
    person: User, workers: Workers, outside: Outside, tmp_path: Path
) -> None:
    agent, runs = Agent.objects.get(name="matrix"), dict[str, Run]()
    for number, point in enumerate(BOUND):
        run = runs[point] = actions.start_run(
            agent=agent, version="1", goal=point, input={"late": f"l{number}"}, start_key=f"l{number}",
            creator=person, principal=person,
        )  # fmt: skip
        actions.signal_run(person=person, run_id=run.pk, name="go", payload='"blue"', submission=uuid4())
        (tmp_path / f"{run.pk}@{point}").touch()
    environment = {
        "HANDOFF_AGENTS": "tests.matrix.agent:AGENT",
        "MATRIX_URL": outside.url,
        crash.VARIABLE: str(tmp_path),
    }
    workers.start(environment=environment)
    cases = [Case(point, "", run) for point, run in runs.items()]
    reached(cases, lambda state: state.state is State.SUCCEEDED)

    assert list(tmp_path.glob("*@*")) == []
    for number, run in enumerate(runs.values()):
        (effect,) = assert_replays(run).effects.values()
        assert effect.arguments == f'{{"note":"blue","thing":"l{number}"}}'
        assert len(outside.found(f"do:l{number}")) == 1
