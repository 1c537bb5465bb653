"""A receipt and the send after it are one commit; whatever stops that send, the receipt is stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from accounts.rights import Right, withdraw_right
from runs import actions, engine
from runs.agents import Plan, Timer
from runs.clock import database_now
from runs.ledger import log
from runs.machine import events as e
from runs.machine.state import EffectStatus, State
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.scripted import Script, pay
from tests.runs.test_evidence import _end_my_connection, kinds


def during_first_call(world: World, work: Callable[[], object]) -> None:
    """`work` happens while the outside does the first effect."""

    def hook(when: str) -> None:
        if when == "after":
            world.hook = None
            work()

    world.hook = hook


def transactions(run: Run, *types: type[e.Event]) -> list[str]:
    """The transaction that wrote each event of these types."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT xmin::text FROM runs_event WHERE run_id = %s AND type = ANY(%s) ORDER BY seq",
            [run.pk, [t.__name__ for t in types]],
        )
        return [row[0] for row in cursor.fetchall()]


def test_a_receipt_is_stored_with_the_intent_of_the_next_step(house: House, world: World) -> None:
    run = house.start()

    assert advance(run).state is State.SUCCEEDED

    intent, receipt, next_intent, last = transactions(run, e.EffectIntended, e.ReceiptStored)
    assert receipt == next_intent
    assert len({intent, receipt, last}) == 3
    assert world.calls == ["pay:1042", "tell:1042"]


def test_a_right_lost_during_the_call_stops_the_next_send_and_not_the_receipt(
    house: House, world: World
) -> None:
    run = house.approved()

    def withdraw() -> None:
        withdraw_right(
            to=house.approver, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now()
        )

    during_first_call(world, withdraw)

    state = advance(run)

    assert state.effects[1].status is EffectStatus.CONFIRMED
    assert world.calls == ["pay:2000"]
    assert state.state is State.WAITING_APPROVAL


def test_a_cancel_during_the_call_stops_the_next_send_and_not_the_receipt(house: House, world: World) -> None:
    run = house.start()
    during_first_call(
        world,
        lambda: actions.cancel_run(person=house.operator, run_id=run.pk, note="stop", submission=uuid4()),
    )

    state = advance(run)

    assert state.state is State.CANCELLED
    assert state.effects[1].status is EffectStatus.CONFIRMED
    assert world.calls == ["pay:1042"]
    assert kinds(run).count("ReceiptStored") == 1


def test_a_send_that_cannot_be_prepared_costs_no_receipt(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("an adapter's account cannot be read")

    monkeypatch.setattr(engine, "_following", broken)
    run = house.start()

    assert advance(run).state is State.SUCCEEDED

    assert len(set(transactions(run, e.EffectIntended, e.ReceiptStored))) == 4
    assert world.calls == ["pay:1042", "tell:1042"]


def test_a_worker_that_lost_its_lease_during_the_call_sends_nothing_more(
    house: House, world: World, clock: Clock
) -> None:
    run = house.start()

    def overtaken() -> None:
        clock.move(timedelta(minutes=1))
        engine.advance(run.pk)

    during_first_call(world, overtaken)

    assert advance(run).state is State.SUCCEEDED
    assert world.calls == ["pay:1042", "tell:1042"]
    assert kinds(run).count("EffectIntended") == 2


def test_what_was_stored_without_an_answer_is_not_called_once_something_came_after_it(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The acknowledgement of receipt and intent is lost, and a person's event follows before the worker looks."""
    real = actions.write
    run = house.start()

    def write(state: Any, events: Any, **more: Any) -> Any:
        new = real(state, events, **more)
        if [type(x) for x in events] == [e.ReceiptStored, e.EffectIntended]:
            monkeypatch.setattr(actions, "write", real)
            actions.cancel_run(person=house.operator, run_id=run.pk, note="stop", submission=uuid4())
            _end_my_connection()
            connection.cursor().execute("select 1")
        return new

    monkeypatch.setattr(actions, "write", write)

    engine.advance(run.pk)

    state = assert_replays(run)
    assert world.calls == ["pay:1042"]
    assert state.effects[1].status is EffectStatus.CONFIRMED
    assert state.effects[2].status is EffectStatus.UNKNOWN
    assert not any(isinstance(x.event, e.EvidenceKept) for x in log(run.pk))


def test_a_receipt_before_a_wait_is_stored_alone_and_without_complaint(
    house: House, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    rest = Timer(name="rest", length=timedelta(minutes=1))
    script.proposals = [lambda view: Plan(steps=(pay(name="pay:1", order="1"), rest, pay()))]
    run = house.start()

    assert advance(run).state is State.WAITING

    assert kinds(run).count("EffectIntended") == 1
    assert kinds(run).count("ReceiptStored") == 1
    assert "not prepared" not in caplog.text
