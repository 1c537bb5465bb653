"""What a run may spend: its effects are counted from the moment they are sent, and nothing goes over."""

from __future__ import annotations

from decimal import Decimal
from uuid import uuid4

from runs import actions
from runs.machine.state import State
from runs.models import Run
from tests.outside import World
from tests.people import House, advance


def test_within_its_budget_it_goes_on(house: House, world: World) -> None:
    assert advance(house.start(amount="50.00", budget=Decimal("100.00"))).state is State.SUCCEEDED


def test_a_plan_that_costs_more_than_is_left_needs_a_person_before_anything_is_sent(
    house: House, world: World
) -> None:
    state = advance(house.start(amount="50.00", budget=Decimal("99.99")))

    assert [(r.code, r.evidence) for r in state.reasons] == [("budget_exhausted", "-0.01")]
    assert world.calls == []


def test_what_was_refused_costs_nothing(house: House, world: World) -> None:
    world.answers = ["refused"]

    state = advance(house.start(amount="50.00", budget=Decimal("100.00")))

    assert state.spent == 0


def test_what_may_have_happened_is_reserved(house: House, world: World) -> None:
    world.answers, world.outage = ["silent"], "no answer"

    state = advance(house.start(amount="50.00", budget=Decimal("100.00")))

    assert state.state is State.UNKNOWN
    assert state.spent == Decimal("50.00")


def test_a_successor_may_spend_what_is_left(house: House, world: World) -> None:
    world.answers = ["", "refused"]
    run = house.start(amount="50.00", budget=Decimal("120.00"))
    advance(run)
    successor = actions.restart_run(person=house.operator, run_id=run.pk, note="", submission=uuid4()).run

    state = advance(Run.objects.get(pk=successor))

    assert state.identity.budget == "70.00"
    assert state.state is State.SUCCEEDED
