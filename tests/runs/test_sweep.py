"""The sweep: it wakes what is due and served, and hands to a person what nobody serves."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from django.db import connection

from runs import actions, agents, recovery
from runs.ledger import load
from runs.machine.state import State
from runs.machine.transitions import Decision
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays


def serve(*queues: str) -> None:
    """A worker that was heard of just now and reads these queues."""
    recovery.announce("somebody")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_worker SET serves = %s", [list(queues)])


def test_it_wakes_what_is_due_and_served(house: House) -> None:
    serve(*agents.served_queues())
    house.start()
    house.waiting("2", "300.00")

    assert recovery.sweep() == 1


def test_it_leaves_a_held_run_alone(house: House) -> None:
    serve(*agents.served_queues())
    held = recovery.claim(house.start().pk)

    assert held is not None
    assert recovery.sweep() == 0


def test_a_version_that_nobody_serves_is_left_alone_within_its_grace(house: House) -> None:
    run = house.start()

    recovery.sweep()

    assert load(run.pk).state is State.PLANNING


def test_a_version_that_nobody_serves_needs_a_person_after_its_grace(house: House, clock: Clock) -> None:
    run = house.approved()
    clock.move(timedelta(seconds=3))

    recovery.sweep()

    state = assert_replays(run)
    assert state.state is State.NEEDS_HUMAN
    assert [(r.code, r.evidence) for r in state.reasons] == [("version_unavailable", "1")]


def test_after_an_outage_the_first_worker_up_leaves_the_others_their_grace(
    house: House, clock: Clock
) -> None:
    run = house.approved()
    clock.move(timedelta(minutes=5))
    serve("agent.another.1")

    recovery.sweep()
    assert load(run.pk).state is State.APPROVED

    clock.move(timedelta(seconds=1.5))
    serve("agent.another.1")
    clock.move(timedelta(seconds=1.5))
    recovery.sweep()
    assert load(run.pk).state is State.NEEDS_HUMAN


def test_it_goes_on_once_the_version_is_served_again(house: House, world: World, clock: Clock) -> None:
    run = house.approved()
    clock.move(timedelta(seconds=3))
    recovery.sweep()

    actions.decide_run(
        person=house.operator, run_id=run.pk, decision=Decision.RESUME, note="", submission=uuid4()
    )

    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:2000") == 1


def test_unserved_runs_do_not_keep_the_served_from_being_woken(house: House) -> None:
    first, second = house.start("1"), house.start("2")
    Run.objects.filter(pk=first.pk).update(agent_version="0")
    serve(*agents.served_queues())

    assert [row[0] for row in recovery._due(recovery.live_serves(), served_ones=True, late=timedelta())] == [
        second.pk
    ]
    Run.objects.filter(pk=first.pk).update(agent_version="1")
