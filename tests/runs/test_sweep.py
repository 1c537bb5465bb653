"""The sweep: it wakes what is due and served, and hands to a person what nobody serves."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection

from runs import actions, agents, engine, outbox, recovery, tasks, wakes
from runs.clock import database_now
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

    assert [row[0] for row in wakes.take(served=recovery.live_serves(), most=1000)] == [second.pk]
    Run.objects.filter(pk=first.pk).update(agent_version="1")


class Woken:
    """The wake-ups that the sweep sent, and whether the broker takes them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs: list[str] = []
        self.taken = True
        self.messages: list[int] = []
        monkeypatch.setattr(outbox, "wake_each", self._wake)

    def _wake(self, *, run_ids: list[str], **_: object) -> bool:
        if self.taken:
            self.runs += run_ids
            self.messages.append(len(run_ids))
        return self.taken

    def swept(self) -> list[str]:
        """What one more sweep wakes."""
        serve(*agents.served_queues())
        before = len(self.runs)
        recovery.sweep()
        return self.runs[before:]


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> Woken:
    return Woken(monkeypatch)


def test_what_was_woken_is_woken_again_only_after_a_while(house: House, woken: Woken, clock: Clock) -> None:
    run = house.start()

    assert woken.swept() == [run.pk]
    assert woken.swept() == []
    clock.move(timedelta(seconds=3))
    assert woken.swept() == [run.pk]


def test_a_run_whose_time_comes_anew_is_woken_at_once(
    house: House, world: World, woken: Woken, clock: Clock
) -> None:
    run = house.start()
    assert woken.swept() == [run.pk]
    world.unreadable = "down"
    assert advance(run).retry_at is not None
    assert woken.swept() == []
    clock.move(timedelta(seconds=2.2))  # less than a wake-up is given
    assert woken.swept() == [run.pk]


def test_runs_that_are_woken_in_vain_do_not_keep_the_others_from_their_turn(
    house: House, woken: Woken, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "SWEEP_AT_MOST", 2)
    stuck = {house.start(str(n)).pk for n in range(3)}
    clock.move(timedelta(seconds=1))
    other = house.start("9").pk

    assert set(woken.swept()) < stuck
    assert woken.swept() == []  # two are told and not yet taken
    clock.move(timedelta(seconds=3))
    assert other in woken.swept()


def test_what_the_broker_did_not_take_is_woken_by_the_next_sweep(house: House, woken: Woken) -> None:
    run = house.start()
    woken.taken = False
    assert woken.swept() == []
    woken.taken = True
    assert woken.swept() == [run.pk]


def test_a_database_clock_that_steps_back_silences_no_run(house: House, woken: Woken, clock: Clock) -> None:
    run = house.start()
    clock.move(timedelta(minutes=10))
    assert woken.swept() == [run.pk]
    clock.move(timedelta(minutes=-10))
    Run.objects.filter(pk=run.pk).update(wake_at=database_now())
    assert woken.swept() == [run.pk]
    Run.objects.filter(pk=run.pk).update(wake_at=load(run.pk).at)


def test_no_more_is_woken_than_the_live_workers_take_in_time(
    house: House, woken: Woken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakes, "PER_SECOND", 4)  # the sweep comes every half second
    for number in range(5):
        house.start(str(number))

    assert len(woken.swept()) == 2
    recovery.announce("another")
    assert len(woken.swept()) == 2


def test_few_due_runs_have_a_message_each_and_many_share_some(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken = Woken(monkeypatch)
    few = [house.start(str(n)).pk for n in range(3)]
    assert sorted(woken.swept()) == sorted(few)
    assert woken.messages == [1, 1, 1]

    monkeypatch.setattr(wakes, "MANY", 2)
    many = [house.start(str(n)).pk for n in range(3, 10)]
    assert sorted(woken.swept()) == sorted(many)
    assert woken.messages[3:] == [3, 3, 1]


def test_a_run_that_cannot_be_moved_keeps_no_other_of_its_message_from_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = house.start("1"), house.start("2")
    advance_one = engine.advance

    def fails(run_id: str) -> int:
        if run_id == first.pk:
            raise RuntimeError("a fault")
        return advance_one(run_id)

    monkeypatch.setattr(engine, "advance", fails)
    tasks.advance_each([first.pk, second.pk])
    assert load(first.pk).state is State.PLANNING
    assert load(second.pk).state is State.SUCCEEDED


def test_a_connection_that_breaks_under_one_run_keeps_no_other_of_its_message_from_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = house.start("1"), house.start("2")
    advance_one = engine.advance

    def breaks(run_id: str) -> int:
        if run_id == first.pk:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return advance_one(run_id)

    monkeypatch.setattr(engine, "advance", breaks)
    tasks.advance_each([first.pk, second.pk])
    assert load(second.pk).state is State.SUCCEEDED
