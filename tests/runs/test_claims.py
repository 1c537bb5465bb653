"""Claims: one holder at a time, a lease that ends, and runs that cannot go on left to a person."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections

from runs import agents, engine, outbox, recovery
from runs.ledger import load
from runs.machine.state import RequestStatus, State
from runs.machine.transitions import Decision
from runs.models import Claim, Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance
from tests.runs.test_ledger import sql, tampering


def at_once(work: Any, *, threads: int = 8) -> list[Any]:
    """What each thread got, all begun at the same moment."""
    barrier, got, lock = threading.Barrier(threads), list[Any](), threading.Lock()

    def go() -> None:
        try:
            connection.ensure_connection()
            barrier.wait(30)
            result = work()
            with lock:
                got.append(result)
        finally:
            connections.close_all()

    running = [threading.Thread(target=go) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
    assert len(got) == threads
    return got


def test_of_eight_workers_one_gets_the_run(house: House, world: World) -> None:
    run = house.start()

    got = at_once(lambda: recovery.claim(run.pk))

    (held,) = [h for h in got if h is not None]
    assert Claim.objects.filter(run=run).count() == 1
    held.__exit__(None, None, None)


def test_a_message_delivered_eight_times_sends_once(house: House, world: World) -> None:
    run = house.start()

    moved = at_once(lambda: engine.advance(run.pk))

    assert load(run.pk).state is State.SUCCEEDED
    assert world.calls == ["pay:1042", "tell:1042"]
    assert sum(n > 0 for n in moved) == 1


def test_a_live_lease_is_not_taken_and_one_that_ended_is(house: House, world: World, clock: Clock) -> None:
    run = house.start()
    first = recovery.claim(run.pk)
    assert first is not None
    clock.move(timedelta(seconds=1.5))
    assert recovery.claim(run.pk) is None
    clock.move(timedelta(seconds=1))

    second = recovery.claim(run.pk)

    assert second is not None
    assert second.token == first.token + 1
    second.__exit__(None, None, None)


def test_a_send_holds_the_run_for_the_whole_call(house: House, world: World, clock: Clock) -> None:
    """The lease covers the window and the tool's time-out, however short leases are."""
    seen: list[Any] = []

    def hook(when: str) -> None:
        if when == "before" and not seen:
            until = Run.objects.get(pk=run.pk).lease_until
            seen.append(until is not None and until - clock.now() > timedelta(seconds=1.4))

    world.hook = hook
    run = house.start()
    advance(run)
    assert seen == [True]


def test_each_claim_keeps_the_answer_of_the_rows_before_it(house: House, world: World) -> None:
    run = house.start()
    advance(run)

    claim = Claim.objects.get(run=run)

    assert claim.answer["action"] == "run"
    assert claim.seq == 1


def test_five_claims_without_an_event_need_a_person(house: House, world: World, clock: Clock) -> None:
    run = house.start()
    for _ in range(5):
        assert recovery.claim(run.pk) is not None
        clock.move(timedelta(seconds=3))

    assert recovery.claim(run.pk) is None

    state = load(run.pk)
    assert [r.code for r in state.reasons] == ["no_progress"]
    house.choose(run, Decision.RESUME)
    assert advance(run).state is State.SUCCEEDED


def test_a_run_with_an_effect_in_flight_that_makes_no_progress_asks_about_it_when_resumed(
    house: House, world: World, clock: Clock
) -> None:
    def hook(when: str) -> None:
        if when == "after":
            world.hook = None
            raise SystemExit

    world.hook = hook
    run = house.start()
    with pytest.raises(SystemExit):
        engine.advance(run.pk)
    for _ in range(recovery.CLAIMS_WITHOUT_EVENT):
        clock.move(timedelta(seconds=3))
        assert recovery.claim(run.pk) is not None
    clock.move(timedelta(seconds=3))
    assert recovery.claim(run.pk) is None
    state = load(run.pk)
    assert [r.code for r in state.reasons] == ["no_progress"]
    assert len(state.open_effects) == 1

    assert house.choose(run, Decision.RESUME).state is State.UNKNOWN

    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:1042") == 1


def test_a_worker_without_the_agents_version_leaves_the_run_as_it_is(
    house: House, world: World, clock: Clock, settings: Any
) -> None:
    run = house.start()
    settings.HANDOFF_AGENTS = []
    agents.registered.cache_clear()
    for _ in range(recovery.CLAIMS_WITHOUT_EVENT + 2):
        assert engine.advance(run.pk) == 0
        clock.move(timedelta(seconds=3))
    settings.HANDOFF_AGENTS = ["tests.outside:PAYER"]
    agents.registered.cache_clear()

    assert advance(run).state is State.SUCCEEDED


def test_a_log_that_cannot_be_read_is_left_alone_and_reported(
    house: House, world: World, caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    run = house.start()
    with tampering():
        sql("UPDATE runs_event SET type = 'Foretold' WHERE run_id = %s", run.pk)

    assert engine.advance(run.pk) == 0
    assert "cannot be reduced" in caplog.text
    caplog.clear()
    assert engine.advance(run.pk) == 0  # no hot loop: a while passes before it is looked at again
    assert caplog.text == ""
    assert world.calls == []
    with tampering():
        sql("UPDATE runs_event SET type = 'RunStarted' WHERE run_id = %s", run.pk)
    clock.move(timedelta(seconds=61))
    assert advance(run).state is State.SUCCEEDED


def test_the_sweep_wakes_what_is_due_unheld_and_served(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    due, held, waits = house.start("1"), house.start("2"), house.waiting()
    taken = recovery.claim(held.pk)
    assert taken is not None
    woken: list[str] = []

    def wake(*, run_id: str, **_: object) -> bool:
        woken.append(run_id)
        return True

    monkeypatch.setattr(outbox, "wake", wake)
    recovery.sweep()
    assert woken == []  # nobody serves the agent
    recovery.announce("worker@host")
    recovery.sweep()
    assert woken == [due.pk]
    clock.move(timedelta(seconds=6))
    recovery.announce("worker@host")
    recovery.sweep()
    assert set(woken[1:]) == {
        due.pk,
        held.pk,
    }  # the third one's request is over, which the sweep itself records
    assert load(waits.pk).requests[-1].status is RequestStatus.EXPIRED


def test_runs_that_nobody_serves_do_not_keep_others_from_being_woken(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = [house.start(str(n)) for n in range(3)]
    Run.objects.filter(pk__in=[r.pk for r in old]).update(agent_version="0")
    due = house.start("9")
    woken: list[str] = []

    def wake(*, run_id: str, **_: object) -> bool:
        woken.append(run_id)
        return True

    monkeypatch.setattr(outbox, "wake", wake)
    monkeypatch.setattr(recovery, "SWEEP_AT_MOST", 3)
    recovery.announce("worker@host")
    recovery.sweep()

    assert woken == [due.pk]
    Run.objects.filter(pk__in=[r.pk for r in old]).update(agent_version="1")
