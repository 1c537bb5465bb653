"""How long all checks of a revalidation take beside the calls outside, and what the rights on an inbox page cost."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from statistics import median
from time import perf_counter
from typing import Any, ClassVar

import msgspec
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.rights import Right
from approvals.policy import ApprovalRule, RulePolicy
from evals.agent import NOTHING, item_arguments
from evals.figures import Figure
from evals.people import House, build_house
from runs import facts
from runs.access import permitted, visible_runs
from runs.agents import Agent, Constraint, Plan, Proposal, Read, Step, View
from runs.clock import database_now
from runs.ledger import load
from runs.machine.revalidate import failed, report
from runs.models import Run
from runs.tools import Arguments, Reading, ReadingTool

STEPS, OBSERVATIONS, CONSTRAINTS = 20, 50, 30
SHOWN = 50


class Looked(Arguments):
    """What is looked at."""

    thing: str


class Look(ReadingTool):
    """Reads a thing that never changes."""

    name = "look"
    system = "nowhere"
    schema = Looked
    half_life: ClassVar[timedelta] = timedelta(days=1)

    def read(self, arguments: Mapping[str, Any], *, timeout: timedelta) -> Reading:
        thing = str(arguments["thing"])
        return Reading(value={"thing": thing, "is": "there"}, resource=f"thing:{thing}", version="1")


class Careful:
    """Looks at as many things as the steps are to rest on, then proposes the steps."""

    def propose(self, view: View) -> Proposal:
        if len(view.observations) < OBSERVATIONS:
            return _read(len(view.observations))
        return Plan(steps=tuple(_step(view.run, number) for number in range(STEPS)))


def _read(number: int) -> Read:
    return Read(tool="look", arguments={"thing": f"t{number:02}"})


def _step(run: str, number: int) -> Step:
    """Each thing is what some step rests on."""
    item = f"{run}-{number}"
    rests = tuple(_read(thing) for thing in range(OBSERVATIONS) if thing % STEPS == number)
    return Step(name=item, tool="nothing", arguments=item_arguments(item), rests_on=rests)


CAREFUL = Agent(
    name="careful",
    version="1",
    title="Careful",
    planner=Careful(),
    tools=(NOTHING, Look()),
    policy=RulePolicy(version="1", rules=(ApprovalRule(name="every plan", applies=lambda step: True),)),
    constraints=tuple(
        Constraint(
            text=f"limit {n}", source_kind="configuration", source_ref=f"limit-{n}", source_version="1"
        )
        for n in range(CONSTRAINTS)
    ),
)


def measure(*, times: int = 31, runs: int = SHOWN) -> Iterator[Figure]:
    """All checks of an approved run, the facts of the database included and its sources read before; then the rights of
    a person on the runs of an inbox page.
    """
    house = build_house(CAREFUL)
    yield _checks(house, times)
    yield _permissions(house, runs)


def _checks(house: House, times: int) -> Figure:
    run = house.approved(steps=STEPS)
    state, now = load(run.pk), database_now()
    if (len(state.constraints), len(state.observations), len(state.remaining)) != (
        CONSTRAINTS,
        OBSERVATIONS,
        STEPS,
    ):
        raise RuntimeError("the run is not the one to be measured: nothing was measured")
    fresh = {key: read.fresh for key, read in facts.read_needed(state, CAREFUL, now).items()}
    found = []
    with _no_collection():
        for _ in range(times):
            began = perf_counter()
            checks = report(state, facts.gather(state, run, CAREFUL, fresh, now), now)
            found.append(perf_counter() - began)
            if failed(checks):
                raise RuntimeError(f"{msgspec.to_builtins(failed(checks))}: nothing was measured")
    return Figure(name="revalidation_ms", value=1000 * median(found), unit="ms", target=10)


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection among what is measured. One before each would empty the processor's caches for it."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _permissions(house: House, runs: int) -> Figure:
    for _ in range(runs):
        house.started(steps=1)
    rows = list(visible_runs(house.operator)[:runs])
    rights = (Right.OPERATE_RUNS, Right.APPROVE_PLANS, Right.CANCEL_RUNS)
    ids = [row.pk for row in rows]
    permitted(house.operator, rights, ids)
    with CaptureQueriesContext(connection) as asked:
        held = permitted(house.operator, rights, ids)
    if len(held[Right.OPERATE_RUNS]) != Run.objects.filter(pk__in=ids).count():
        raise RuntimeError("the operator may not operate what was started: nothing was measured")
    return Figure(name=f"permissions_of_{runs}_runs_queries", value=len(asked), unit="queries", target=1)
