"""The migrations, forwards and backwards, on whichever PostgreSQL the tests run."""

from __future__ import annotations

from django.core.management import call_command
from django.db import connection

from tests.fixtures.database import LiveDatabase
from tests.fixtures.postgres import wanted_major

OURS = ("runs", "approvals", "accounts")

#: All that migrations make: columns, constraints, indexes, triggers, functions.
MADE = """
    select 'column', attrelid::regclass::text, attname::text,
        format_type(atttypid, atttypmod) || attnotnull || coalesce(pg_get_expr(adbin, adrelid), '')
    from pg_attribute join pg_class on pg_class.oid = attrelid
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where relkind in ('r', 'v', 'm') and attnum > 0 and not attisdropped and relnamespace = 'public'::regnamespace
    union all
    select 'constraint', conrelid::regclass::text, conname::text, pg_get_constraintdef(oid)
    from pg_constraint where connamespace = 'public'::regnamespace
    union all
    select 'index', tablename::text, indexname::text, indexdef from pg_indexes where schemaname = 'public'
    union all
    select 'trigger', tgrelid::regclass::text, tgname::text, pg_get_triggerdef(oid)
    from pg_trigger where not tgisinternal
    union all
    select 'function', oid::regprocedure::text, '', pg_get_functiondef(oid)
    from pg_proc where pronamespace = 'public'::regnamespace and prokind in ('f', 'p')
        and not exists (select 1 from pg_depend where objid = pg_proc.oid and deptype = 'e')
"""


def _made() -> set[tuple[str, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(MADE)
        return set(cursor.fetchall())


def test_the_server_is_of_the_version_that_was_asked_for(live_db: LiveDatabase) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select current_setting('server_version_num')::int / 10000")
        assert cursor.fetchone() == (wanted_major(),)


def test_they_go_all_the_way_back_and_come_to_the_same_again(live_db: LiveDatabase) -> None:
    before = _made()
    for app in OURS:
        call_command("migrate", app, "zero", verbosity=0)
    left = {table for what, table, *_ in _made() if what == "column"}
    for app in OURS:
        assert not [table for table in left if table.startswith(f"{app}_")]

    call_command("migrate", verbosity=0)

    assert _made() == before
