"""What a plan takes for true: kept with its basis, marked when that breaks, and named with what broke it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any, cast

import pytest
from django.apps import apps
from pytest_django import Settings

from runs import actions, agents
from runs.clock import database_now
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.assumptions import Standing, assumed
from runs.models import Assumption, Run
from runs.pages import assumed as rows
from runs.rereduction import differences
from tests.fixtures.clock import Clock
from tests.outside import PAYER, LookUp, Payer, World
from tests.people import House, advance, assert_replays

OPEN, LIMIT = "The supplier of order 2000 delivers.", PAYER.constraints[0].text


class Assuming(Payer):
    """Reads another order too, and takes for true what it says of the supplier."""

    def propose(self, view: agents.View) -> agents.Proposal:
        other = agents.Read(tool="look_up", arguments={"order": "supplier"})
        if view.observed("look_up", {"order": "supplier"}) is None:
            return other
        made = super().propose(view)
        if not isinstance(made, agents.Plan):
            return made
        told = str(view.input.get("limit", LIMIT))
        assume = agents.Assume(text=OPEN, rests_on=(other,), constraints=(told,))
        twice = (assume,) if view.input.get("twice") else ()
        return replace(made, assumptions=(assume, *twice))


ASSUMING = replace(PAYER, planner=Assuming())


@pytest.fixture(autouse=True)
def _assuming(world: World, settings: Settings) -> Iterator[None]:
    settings.HANDOFF_AGENTS = ["tests.runs.test_assumptions:ASSUMING"]
    agents.registered.cache_clear()
    yield
    agents.registered.cache_clear()


def standing(run: Run) -> list[tuple[Standing, str]]:
    state = load(run.pk)
    return [(x.standing, x.by) for plan in state.plans for x in assumed(state, plan, database_now())]


def test_a_plan_keeps_what_it_takes_for_true_with_its_basis(house: House, world: World) -> None:
    run = house.waiting()

    row = Assumption.objects.get(run=run)

    assert (row.plan_version, row.number, row.text) == (1, 1, OPEN)
    state = load(run.pk)
    seen = next(o for o in state.observations.values() if o.resource == "order:supplier")
    assert (row.observations, row.constraints, row.broken_seq) == ([seen.number], [1], None)
    assert standing(run) == [(Standing.HOLDS, "")]


def test_one_whose_observation_expires_has_to_be_read_again_first(
    house: House, world: World, clock: Clock
) -> None:
    run = house.waiting()
    clock.move(2 * LookUp.half_life)

    assert standing(run) == [(Standing.OUT_OF_DATE, "")]
    (row,) = rows.rows(load(run.pk), list(log(run.pk)), database_now())
    assert row["standing"] == "Basis out of date"
    assert row["basis"][0]["note"] == "out of date: it is read again before the run goes on"


def test_another_value_of_what_no_step_rests_on_breaks_it_and_the_run_replans(
    house: House, world: World
) -> None:
    """The steps rest on the order alone; the supplier's state is only taken for true."""
    run = house.approved()
    world.versions["supplier"] = "v2"

    state = advance(run)

    assert world.executed == [] and state.state is s.State.WAITING_APPROVAL
    assert "assumptions" in [x.what for x in state.plans[0].voided]
    assert standing(run) == [(Standing.BROKEN, "order:supplier"), (Standing.HOLDS, "")]
    broken, new = Assumption.objects.filter(run=run).order_by("plan_version")
    refused = next(r.seq for r in log(run.pk) if isinstance(r.event, e.RevalidationRefused))
    assert (broken.broken_seq, broken.broken_by, new.broken_seq) == (refused, "order:supplier", None)
    first, _second = rows.rows(state, list(log(run.pk)), database_now())
    assert first["standing"] == "Broken"
    assert "version v1 → v2" in first["broken"] and "Plan v1 ended with that." in first["broken"]


def test_what_it_rests_on_is_read_again_also_where_no_step_does(house: House, world: World) -> None:
    run = house.approved()
    advance(run)
    read = [r.event.resource for r in log(run.pk) if isinstance(r.event, e.ObservationRecorded)]
    assert read.count("order:supplier") == 2


def test_a_constraint_that_is_withdrawn_breaks_what_rests_on_it(house: House, world: World) -> None:
    run = house.waiting()
    state = load(run.pk)
    gone = e.ConstraintWithdrawn(number=1, why="not needed any more")

    after = actions.write(
        state, [gone], run=run, actor=actions.person_actor(house.operator), now=database_now()
    )

    assert_replays(run)
    assert standing(run)[0] == (Standing.BROKEN, "C-1")
    row = Assumption.objects.get(run=run, plan_version=1)
    assert (row.broken_seq, row.broken_by) == (after.seq, "C-1")
    shown = rows.rows(after, list(log(run.pk)), database_now())[0]
    assert "the constraint C-1, which does not stand as it was accepted" in shown["broken"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"limit": "Pay nothing."}, "rests on a constraint that the run did not accept: “Pay nothing.”"),
        ({"twice": True}, f"the assumption “{OPEN}” stands twice"),
    ],
)
def test_an_assumption_without_a_basis_or_twice_is_refused(
    house: House, world: World, more: dict[str, Any], said: str
) -> None:
    run = house.start(**more)
    advance(run)
    refused = [r.event for r in log(run.pk) if isinstance(r.event, e.ProposalRefused)]
    assert said in refused[0].problems[0]
    assert not Assumption.objects.exists()


def test_the_rows_of_plans_from_before_there_was_a_table_are_made(house: House, world: World) -> None:
    run = house.approved()
    world.versions["supplier"] = "v2"
    advance(run)
    Assumption.objects.all().delete()
    assert differences(run.pk) != []

    import_module("runs.migrations.0014_obligations").fill(apps, cast(Any, None))

    assert differences(run.pk) == []
    assert Assumption.objects.count() == 2
