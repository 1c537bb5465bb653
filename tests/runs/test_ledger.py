"""The log: append-only, chained, guarded; and what the database refuses whatever the code does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from msgspec.structs import replace

from runs import recovery
from runs.clock import database_now
from runs.ledger import (
    AppendRefused,
    ClockMoved,
    LeaseLost,
    LogUnreadable,
    RunChangedMeanwhile,
    RunMissing,
    append,
    chain_problem,
    load,
)
from runs.machine import events as e
from runs.machine.state import RunState
from runs.models import Run
from runs.rereduction import differences
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance

NOTE = e.CancelRequested(note="x")
KEPT = e.EvidenceKept(
    effect=1, executed=None, reference="", evidence=e.raw("{}"), source="call", contradicts=False
)
BY = e.Actor(e.ActorKind.WORKER, "w", "w")


def sql(statement: str, *parameters: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


@contextmanager
def tampering() -> Iterator[None]:
    """As someone may who is superuser of the database: no trigger sees it."""
    sql("SET session_replication_role = replica")
    try:
        yield
    finally:
        sql("SET session_replication_role = origin")


@pytest.fixture
def paid(house: House, world: World) -> RunState:
    return advance(house.start())


def run_of(state: RunState) -> Run:
    return Run.objects.get(pk=state.identity.run)


REFUSED_BY_TRIGGERS = {
    "change a body": "UPDATE runs_event SET body = '{}' WHERE seq = 2",
    "change a type": "UPDATE runs_event SET type = 'RunSucceeded' WHERE seq = 2",
    "change a time": "UPDATE runs_event SET at = at + interval '1 hour'",
    "change a state": "UPDATE runs_event SET state_after = 'cancelled' WHERE seq = 2",
    "change an actor": "UPDATE runs_event SET actor_name = 'Somebody'",
    "change a hash": "UPDATE runs_event SET hash = 'x' WHERE seq = 2",
    "erase and change": "UPDATE runs_event SET body = NULL, actor_name = 'Somebody' WHERE seq = 2",
    "delete one": "DELETE FROM runs_event WHERE seq = 2",
    "delete all": "DELETE FROM runs_event",
    "truncate": "TRUNCATE runs_event CASCADE",
    "claims": "UPDATE runs_claim SET worker = 'x'",
    "delete claims": "DELETE FROM runs_claim",
    "truncate claims": "TRUNCATE runs_claim",
}


def test_the_log_is_append_only(paid: RunState) -> None:
    for name, statement in REFUSED_BY_TRIGGERS.items():
        with pytest.raises(IntegrityError), transaction.atomic():
            sql(statement)
        assert (name, chain_problem(paid.identity.run)) == (name, "")
    assert differences(paid.identity.run) == []


def test_submissions_are_append_only(house: House, world: World) -> None:
    house.cancel(house.start())
    for statement in (
        "UPDATE runs_submission SET action = 'x'", "DELETE FROM runs_submission", "TRUNCATE runs_submission"
    ):  # fmt: skip
        with pytest.raises(IntegrityError), transaction.atomic():
            sql(statement)


def test_a_body_alone_can_be_erased_and_the_chain_stays_whole(paid: RunState, house: House) -> None:
    id_ = paid.identity.run
    sql("UPDATE runs_event SET body = NULL WHERE run_id = %s AND seq = 2", id_)

    assert chain_problem(id_) == ""
    with pytest.raises(LogUnreadable) as refused:
        load(id_)
    assert refused.value.seq == 2
    with pytest.raises(IntegrityError), transaction.atomic():
        sql("UPDATE runs_event SET body = '{}' WHERE run_id = %s AND seq = 2", id_)
    _forget(id_)


def _forget(id_: str) -> None:
    """Take a run whose log a test broke out of the way of the checks at the end."""
    with tampering():
        sql("DELETE FROM runs_event WHERE run_id = %s", id_)
        sql("UPDATE runs_run SET seq = 0 WHERE id = %s", id_)


#: what was tampered with -> what the check says, for a log of `n` events.
TAMPERED = {
    "UPDATE runs_event SET body = replace(body, '50.00', '99.00') WHERE run_id = %s AND seq = 7": "body of event 7",
    "UPDATE runs_event SET body = '{}', body_digest = sha256('{}') WHERE run_id = %s AND seq = 2": "event 2",
    "UPDATE runs_event SET type = 'RunSucceeded' WHERE run_id = %s AND seq = 2": "event 2",
    "UPDATE runs_event SET version = 2 WHERE run_id = %s AND seq = 2": "event 2",
    "UPDATE runs_event SET at = at - interval '1 us' WHERE run_id = %s AND seq = 2": "event 2",
    "UPDATE runs_event SET actor_kind = 'person' WHERE run_id = %s AND seq = 2": "event 2",
    "UPDATE runs_event SET actor_id = 'x' WHERE run_id = %s AND seq = 2": "event 2",
    "UPDATE runs_event SET actor_name = 'x' WHERE run_id = %s AND seq = 2": "event 2",
    "UPDATE runs_event SET state_before = 'approved' WHERE run_id = %s AND seq = 2": "event 2",
    "UPDATE runs_event SET state_after = 'approved' WHERE run_id = %s AND seq = 2": "event 2",
    "UPDATE runs_event SET previous = 'x' WHERE run_id = %s AND seq = 2": "event 2",
    "UPDATE runs_event SET hash = 'x' WHERE run_id = %s AND seq = 2": "event 2",
    "DELETE FROM runs_event WHERE run_id = %s AND seq = 2": "event 2 is missing",
    "DELETE FROM runs_event WHERE run_id = %s AND seq = 1": "event 1 is missing",
    "DELETE FROM runs_event WHERE run_id = %s AND type = 'RunSucceeded'": "the log ends",
    "UPDATE runs_run SET head = 'x' WHERE id = %s": "the log ends",
    "UPDATE runs_run SET seq = seq + 1 WHERE id = %s": "the log ends",
}


def test_the_chain_shows_every_kind_of_tampering(paid: RunState) -> None:
    id_ = paid.identity.run
    for statement, says in TAMPERED.items():
        with transaction.atomic():
            sql("SET LOCAL session_replication_role = replica")
            sql(statement, id_)
            assert (statement, says in chain_problem(id_)) == (statement, True)
            transaction.set_rollback(True)
    assert chain_problem(id_) == ""


def test_an_event_of_another_run_does_not_fit_into_the_chain(house: House, world: World) -> None:
    one, other = house.start("1"), house.start("2")
    with transaction.atomic():
        sql("SET LOCAL session_replication_role = replica")
        sql("DELETE FROM runs_event WHERE run_id = %s", one.pk)
        sql(
            "INSERT INTO runs_event (run_id, seq, tenant_id, type, version, at, actor_kind, actor_id, actor_name, "
            "state_before, state_after, body, body_digest, previous, hash) SELECT %s, seq, tenant_id, type, version, "
            "at, actor_kind, actor_id, actor_name, state_before, state_after, body, body_digest, previous, hash "
            "FROM runs_event WHERE run_id = %s",
            one.pk,
            other.pk,
        )
        assert chain_problem(one.pk) == "event 1 is not as it was stored"
        transaction.set_rollback(True)


def _refusals(state: RunState) -> dict[type[AppendRefused], dict[str, Any]]:
    foreign = replace(state, identity=replace(state.identity, tenant=str(uuid4())))
    nobody = replace(state, identity=replace(state.identity, run="run_NOBODY"))
    now = database_now()
    return {
        LeaseLost: {"state": state, "now": now, "token": 99},
        RunChangedMeanwhile: {"state": replace(state, seq=state.seq - 1), "now": now},
        ClockMoved: {"state": state, "now": now + timedelta(minutes=10)},
        RunMissing: {"state": nobody, "now": now},
        AppendRefused: {"state": foreign, "now": now},
    }


def test_a_refused_append_writes_nothing(house: House, world: World) -> None:
    state = load(house.start().pk)
    for expected, given in _refusals(state).items():
        with pytest.raises(expected):
            append(events=[NOTE], actor=BY, **given)
        assert (expected, load(state.identity.run)) == (expected, state)
    assert differences(state.identity.run) == []


def test_a_run_of_another_tenant_is_missing_as_one_that_never_was(house: House, world: World) -> None:
    state = load(house.start().pk)
    foreign = replace(state, identity=replace(state.identity, tenant=str(house.stranger.tenants()[0].pk)))
    with pytest.raises(RunMissing):
        append(foreign, [NOTE], actor=BY, now=database_now())


@pytest.mark.parametrize("by", [timedelta(minutes=10), timedelta(minutes=-10)])
def test_a_clock_that_jumped_is_read_again_and_a_runs_time_never_goes_back(
    house: House, world: World, clock: Clock, by: timedelta
) -> None:
    run = house.start()
    held = recovery.claim(run.pk)
    assert held is not None
    before = held.state.at
    clock.move(by)
    with pytest.raises(ClockMoved):
        append(held.state, [NOTE], actor=BY, now=before + timedelta(minutes=5))

    held.decide(lambda state, now: (KEPT,))
    held.__exit__(None, None, None)

    state = load(run.pk)
    assert state.at >= before
    assert state.seq == 2
    clock.move(-by)


def test_a_worker_whose_own_clock_is_wrong_goes_by_the_databases(
    house: House, world: World, clock: Clock
) -> None:
    """Ten minutes ahead and back in the middle of a run: it is finished once, and nothing is sent twice."""
    jumps = [timedelta(minutes=10), timedelta(minutes=-10)]

    def hook(when: str) -> None:
        if when == "after" and jumps:
            clock.move(jumps.pop(0))

    world.hook = hook
    run = house.start()

    advance(run)
    clock.move(timedelta(minutes=11))
    state = advance(run)

    assert state.state.value == "succeeded"
    assert world.calls == ["pay:1042", "tell:1042"]


def test_of_two_appends_on_the_same_seq_one_is_refused(house: House, world: World) -> None:
    state = load(house.start().pk)
    append(state, [KEPT], actor=BY, now=database_now())
    with pytest.raises(RunChangedMeanwhile):
        append(state, [KEPT], actor=BY, now=database_now())


ROW = (
    "INSERT INTO runs_effect (run_id, number, tenant_id, lineage, step, tool, system, operation_id, key, round, "
    "arguments_digest, title, reversible, status, intent_seq, send_seq, reference) "
    "SELECT run_id, 90 + %s, tenant_id, lineage, step, tool, %s, %s, %s, round, arguments_digest, title, reversible, "
    "%s, intent_seq, send_seq, '' FROM runs_effect WHERE number = 1"
)
EFFECTS: dict[str, tuple[str, str, str, str]] = {
    "held twice, confirmed": ("bank", "pay:1042", "k", "confirmed"),
    "held twice, in flight": ("bank", "pay:1042", "k", "in_flight"),
    "held twice, unknown": ("bank", "pay:1042", "k", "unknown"),
    "a blank in the operation id": ("bank", "pay 1042", "k", "confirmed"),
    "an empty operation id": ("bank", "", "k", "confirmed"),
    "a blank in the system": ("the bank", "pay:1", "k", "confirmed"),
    "no such status": ("bank", "pay:1", "k", "perhaps"),
}


def test_what_no_effect_may_be(paid: RunState) -> None:
    for number, (name, (system, operation, key, status)) in enumerate(EFFECTS.items()):
        with pytest.raises(IntegrityError), transaction.atomic():
            sql(ROW, number, system, operation, key, status)
        assert (name, len(load(paid.identity.run).effects)) == (name, 2)
    with transaction.atomic():
        sql(ROW, 0, "bank", "pay:1042", "another", "not_executed")
        transaction.set_rollback(True)


def test_one_key_is_one_effect(paid: RunState) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        sql(ROW, 1, "bank", "pay:other", paid.effects[1].key, "not_executed")


RUNS = {
    "no wake-up": "UPDATE runs_run SET wake_at = NULL WHERE state = 'planning'",
    "no such state": "UPDATE runs_run SET state = 'running'",
    "no such direction": "UPDATE runs_run SET direction = 'sideways'",
    "a blank id": "UPDATE runs_run SET id = 'run A' WHERE false OR seq >= 0",
    "an empty id": "UPDATE runs_run SET id = ''",
    "a negative seq": "UPDATE runs_run SET seq = -1",
}


def test_what_no_run_may_be(house: House, world: World) -> None:
    house.start()
    for statement in RUNS.values():
        with pytest.raises(IntegrityError), transaction.atomic():
            sql(statement)


def test_a_start_key_starts_once(house: House, world: World) -> None:
    one, other = house.start("1"), house.start("2")
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=other.pk).update(start_key=one.start_key)


def test_what_was_damaged_in_a_log_is_named_by_its_seq(house: House, world: World) -> None:
    """A body that reads well and makes no sense is as unreadable as one of an unknown type."""
    bodies = {
        "type": "UPDATE runs_event SET type = 'Foretold' WHERE run_id = %s AND seq = 2",
        "version": "UPDATE runs_event SET version = 9 WHERE run_id = %s AND seq = 2",
        "body": 'UPDATE runs_event SET body = \'{"effect":"one"}\' WHERE run_id = %s AND seq = 2',
        "no JSON": "UPDATE runs_event SET body = 'x' WHERE run_id = %s AND seq = 2",
        "an effect that never was": "UPDATE runs_event SET type = 'EffectSent', body = "
        """'{"effect":7,"sender":{"host":"h","boot":"b","pid":1,"started":"","uptime":"PT1S"}}' """
        "WHERE run_id = %s AND seq = 2",
        "not allowed": "UPDATE runs_event SET type = 'RunSucceeded', body = '{}' WHERE run_id = %s AND seq = 2",
    }
    state = advance(house.start())
    for name, statement in bodies.items():
        with transaction.atomic():
            sql("SET LOCAL session_replication_role = replica")
            sql(statement, state.identity.run)
            with pytest.raises(LogUnreadable) as refused:
                load(state.identity.run)
            transaction.set_rollback(True)
        assert (name, refused.value.seq) == (name, 2)
