"""A query that every page asks: Django writes its SQL once, not for every page.

Writing a query of some thirty subqueries takes Django many times as long as PostgreSQL needs to answer it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from accounts.models import User

#: Stand in the written query for who asks and when. Nobody is that person, and nothing happens at that time.
SOMEBODY: Final = UUID("3f0c1d52-9c57-4d8e-a1a6-6f1f4b0e7d21")
SOME_TIME: Final = datetime(1987, 6, 5, 4, 3, 2, 101, tzinfo=UTC)


class Shape:
    """A query that differs in nothing but who asks and when."""

    def __init__(self, query: Callable[[User, datetime], QuerySet[Any]], *columns: str) -> None:
        """`query` may not look into the person: it gets one who has nothing but a key. `columns` are annotations that
        are true or not, for `counts`.
        """
        self._query, self._columns = query, columns

    def count(self, person: User, now: datetime) -> int:
        """How many rows there are for this person."""
        return int(self._asked("SELECT count(*) FROM ({}) AS counted", person, now))

    def counts(self, person: User, now: datetime) -> list[int]:
        """How many rows hold each of the columns, for this person."""
        asked = ", ".join(f'count(*) FILTER (WHERE "{column}")' for column in self._columns)
        return list(self._row(f"SELECT {asked} FROM ({{}}) AS counted", person, now))

    def counted(self, person: User, now: datetime) -> tuple[str, list[Any]]:
        """The SQL of `count`, and its parameters, for a query that asks for more than it."""
        rows, parameters = self._written
        return f"(SELECT count(*) FROM ({rows}) AS counted)", [_filled(x, person, now) for x in parameters]

    def any(self, person: User) -> bool:
        """Whether there is a row for this person, of a query that does not ask for the time."""
        return bool(self._asked("SELECT EXISTS ({})", person, SOME_TIME))

    def _asked(self, around: str, person: User, now: datetime) -> Any:
        return self._row(around, person, now)[0]

    def _row(self, around: str, person: User, now: datetime) -> tuple[Any, ...]:
        rows, parameters = self._written
        with connection.cursor() as cursor:
            cursor.execute(around.format(rows), [_filled(value, person, now) for value in parameters])
            found: tuple[Any, ...] = cursor.fetchone()
            return found

    @cached_property
    def _written(self) -> tuple[str, tuple[Any, ...]]:
        rows = self._query(User(pk=SOMEBODY), SOME_TIME).order_by().values(*(self._columns or ("pk",)))
        sql, parameters = rows.query.sql_with_params()
        return sql, parameters


def counts_of(shapes: Sequence[Shape], person: User, now: datetime) -> list[int]:
    """How many rows each of them has for this person: one query for all."""
    asked = [shape.counted(person, now) for shape in shapes]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(sql for sql, _ in asked)}", [x for _, parameters in asked for x in parameters]
        )
        return list(cursor.fetchone())


def _filled(value: Any, person: User, now: datetime) -> Any:
    if value == SOMEBODY:
        return person.pk
    if value == str(SOMEBODY):
        return str(person.pk)
    if isinstance(value, datetime):
        return now + (value - SOME_TIME)
    return value
