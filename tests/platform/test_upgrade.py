"""A database with runs in the middle of their lives is upgraded: all that was recorded is there, and all go on."""

from __future__ import annotations

from datetime import timedelta

from django.core.management import call_command
from django.db import connection

from runs.machine.state import State
from runs.models import Grant
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import time_to_decide
from tests.people import House, advance, assert_replays
from tests.runs.conftest import house, world
from tests.runs.test_grants import end
from tests.runs.test_policies import ALWAYS, hold

__all__ = ["house", "time_to_decide", "world"]

#: What an earlier release ended with.
EARLIER = {"runs": "0011_origin", "accounts": "0006_fence_titles", "approvals": "0005_openedvalue"}

COLUMNS = """
    select table_name, array_agg(quote_ident(column_name) order by column_name) from information_schema.columns
    where table_schema = 'public' and table_name <> 'django_migrations' group by 1
"""
#: Long enough that what may have been sent and is not found was not sent.
SETTLED = timedelta(seconds=3)
Columns = dict[str, list[str]]


def _columns() -> Columns:
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS)
        return dict(cursor.fetchall())


def _rows(columns: Columns) -> dict[str, set[tuple[str]]]:
    """All rows as texts, of these columns."""
    found = {}
    with connection.cursor() as cursor:
        for table, names in columns.items():
            cursor.execute(f"select row({', '.join(names)})::text from {table}")
            found[table] = set(cursor.fetchall())
    return found


def test_all_that_was_recorded_is_there_and_all_runs_go_on(house: House, world: World, clock: Clock) -> None:
    hold(house, ALWAYS)
    over, approved, waiting, lent, doubtful = (house.waiting(str(number)) for number in range(1, 6))
    for run in (over, approved, lent, doubtful):
        house.decide(run, house.approver)
    advance(over)
    world.answers, world.outage = ["lost"], "503"
    assert advance(doubtful).state is State.UNKNOWN
    world.outage = ""
    end(house, Grant.objects.get(runs=lent))
    advance(lent)
    house.lend(lent)

    for app, name in EARLIER.items():
        call_command("migrate", app, name, verbosity=0)
    columns = _columns()
    before = _rows(columns)
    call_command("migrate", verbosity=0)

    now = _rows(columns)
    assert {table: rows - now[table] for table, rows in before.items() if rows - now[table]} == {}
    for run in (over, approved, waiting, lent, doubtful):
        assert_replays(run)
    clock.move(SETTLED)
    assert advance(doubtful).state is State.SUCCEEDED
    assert advance(approved).state is State.SUCCEEDED
    for run in (waiting, lent):
        assert advance(run).state is State.WAITING_APPROVAL
        house.decide(run, house.approver)
        assert advance(run).state is State.SUCCEEDED
    assert {number: world.times(f"pay:{number}") for number in range(1, 6)} == dict.fromkeys(range(1, 6), 1)
