"""A revalidation compares the rows beside the log with what its events say: damage, and rows of another version."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection

from runs import facts, rereduction
from runs.clock import database_now
from runs.engine import advance as moved
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine import projection, revalidate
from runs.machine.decide import revalidation
from runs.machine.state import State
from runs.machine.transitions import Decision
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance


def damage(sql: str, *values: str | int) -> None:
    """As somebody who owns the database could do it."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


NEITHER = "ALTER TABLE approvals_{0} DISABLE TRIGGER USER; {1}; ALTER TABLE approvals_{0} ENABLE TRIGGER USER"
REQUEST = NEITHER.format("request", "UPDATE approvals_request SET needed = %s WHERE subject = %s || ':1'")
DECISION = NEITHER.format(
    "decision",
    "UPDATE approvals_decision SET reason = %s "
    "WHERE request_id = (SELECT id FROM approvals_request WHERE subject = %s || ':1')",
)
#: What is changed to what, how it was, and what is said of it.
DAMAGE: dict[str, tuple[str, str | int, str | int, str]] = {
    "the run": ("UPDATE runs_run SET goal = %s WHERE id = %s", "Pay me", "", "run: goal is 'Pay me', the log says"),
    "a plan": ("UPDATE runs_planversion SET steps = %s WHERE run_id = %s", 9, 2, "plans 1: steps is 9, the log says 2"),
    "one of another": (
        "UPDATE runs_constraint SET number = 90 + %s WHERE run_id = %s", 9, 0, "constraints 1: run_id is None",
    ),
    "one gone": ("DELETE FROM runs_observation WHERE number < %s AND run_id = %s", 99, 0, "observations 1: "),
    "the request": (REQUEST, 7, 1, "needed is 7, the log says 1"),
    "a decision": (DECISION, "paid for", "as was agreed", "paid for"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_rows_that_no_event_made_stop_the_run_and_say_which(house: House, world: World, what: str) -> None:
    run = house.approved()
    assert rereduction.first_difference(load(run.pk)) == ""
    sql, damaged, whole, said = DAMAGE[what]
    damage(sql, damaged, run.pk)

    moved(run.pk)

    (reason,) = load(run.pk).reasons
    assert (reason.code, reason.subject) == ("log_damaged", "rows")
    assert said in reason.evidence
    assert world.calls == []
    damage(sql, whole, run.pk)
    rereduction.rebuild(run.pk)


def test_made_anew_from_the_log_the_run_goes_on(house: House, world: World) -> None:
    run = house.approved()
    damage("UPDATE runs_planversion SET steps = 9 WHERE run_id = %s", run.pk)
    moved(run.pk)
    rereduction.rebuild(run.pk)

    house.choose(run, Decision.RESUME)

    assert advance(run).state is State.SUCCEEDED


def test_rows_of_another_version_are_made_anew_as_an_event_and_the_run_goes_on(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.approved()
    damage(
        "UPDATE runs_planversion SET steps = 9 WHERE run_id = %s", run.pk
    )  # as an older release counted them
    before = projection.PROJECTED
    for module in (projection, revalidate, revalidation):
        monkeypatch.setattr(module, "PROJECTED", "9.9")

    state = advance(run)

    assert state.state is State.SUCCEEDED
    made = [r.event for r in log(run.pk) if isinstance(r.event, e.ProjectionRebuilt)]
    assert made == [e.ProjectionRebuilt(was=before, now="9.9")]
    assert state.projected == "9.9"


def test_a_lease_from_before_a_restore_sends_nothing(house: House, world: World, clock: Clock) -> None:
    """The worker lives through the restore; from outside nobody can tell what the lost events had sent."""
    run = house.approved()

    def hook(when: str) -> None:
        if when == "after":
            world.hook = None
            call_command("declare_restore", "last night's copy")

    world.hook = hook
    moved(run.pk)
    assert world.calls == ["pay:2000"], "the second change is not sent on the lease of before"

    assert advance(run).state is State.UNKNOWN
    types = [type(r.event) for r in log(run.pk)]
    assert types.index(e.HistoryChanged) < len(types) - 1 - types[::-1].index(e.EffectIntended)
    assert world.calls == ["pay:2000"], "what is to be sent first is asked about before"


def test_check_now_compares_the_history_with_that_of_the_last_lease(house: House, world: World) -> None:
    run = house.approved()
    was, now = facts.history_of(run.pk)
    assert was == now
    call_command("declare_restore", "last night's copy")

    assert facts.history_of(run.pk)[0] == was != facts.history_of(run.pk)[1]


@pytest.mark.parametrize("why", ["cancel", "deadline"])
def test_what_stops_a_first_send_stops_another_one_too(
    house: House, world: World, clock: Clock, why: str
) -> None:
    """It can only be sent again, not asked about: then a person says what became of it."""
    world.answers = ["lost"]
    pay = {"tool": "pay_by_key", "order": "8"}
    deadline = database_now() + timedelta(seconds=30) if why == "deadline" else None
    run = house.scripted([pay], deadline=deadline)
    assert load(run.pk).state is State.UNKNOWN
    if why == "cancel":
        house.cancel(run)

    clock.move(timedelta(seconds=60))
    state = advance(run)

    (reason,) = state.reasons
    assert (state.state, reason.code) == (State.NEEDS_HUMAN, "effect_unknown")
    assert "it is not sent again" in reason.evidence
    assert len(world.calls) == 1
