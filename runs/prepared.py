"""A statement that is called over and over: prepared once per connection, with as little around it as there can be.

psycopg's cursors look up how to write each parameter and wait for the socket in steps. Around a statement of a few
hundred microseconds that costs as much again. So in autocommit the parameters, texts already, go straight to libpq, on
Django's own connection. Inside a transaction, which psycopg has to begin, the statement takes a cursor like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast
from weakref import WeakSet

import psycopg
from django.db import connection
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

#: PostgreSQL's "there is no such prepared statement": psycopg drops all of a connection's after some statements.
_GONE = "26000"


class Prepared:
    """One statement with a single row and column as its answer. Parameters are texts as PostgreSQL reads them."""

    def __init__(self, *, name: str, sql: str) -> None:
        """`sql` has a `%s` for each parameter."""
        self._name, self._sql = name.encode(), sql
        first, *rest = sql.split("%s")
        self._numbered = (first + "".join(f"${n}{part}" for n, part in enumerate(rest, 1))).encode()
        self._known: WeakSet[psycopg.Connection[tuple[object, ...]]] = WeakSet()

    def call(self, parameters: Sequence[str | None]) -> str | None:
        """The answer as text, None for NULL. Raises Django's database errors; ValueError for a NUL character."""
        connection.ensure_connection()
        with connection.wrap_database_errors:
            if connection.in_atomic_block or not connection.connection.autocommit:
                return self._by_cursor(parameters)
            return self._directly(connection.connection, cast(list[bytes], [_bytes(p) for p in parameters]))

    def _by_cursor(self, parameters: Sequence[str | None]) -> str | None:
        row = psycopg.Cursor(connection.connection).execute(self._sql, parameters, prepare=True).fetchone()
        return row[0] if row else None

    def _directly(self, raw: psycopg.Connection[tuple[object, ...]], values: list[bytes]) -> str | None:
        if raw not in self._known:
            self._prepare(raw)
        result = raw.pgconn.exec_prepared(self._name, values)
        if result.status != ExecStatus.TUPLES_OK:
            error = _error(raw.pgconn, result)
            if error.sqlstate != _GONE:
                raise error
            self._prepare(raw)
            result = _checked(raw.pgconn, raw.pgconn.exec_prepared(self._name, values), ExecStatus.TUPLES_OK)
        answer = result.get_value(0, 0)
        return None if answer is None else answer.decode()

    def _prepare(self, raw: psycopg.Connection[tuple[object, ...]]) -> None:
        _checked(raw.pgconn, raw.pgconn.prepare(self._name, self._numbered), ExecStatus.COMMAND_OK)
        self._known.add(raw)


def array(texts: Sequence[str]) -> str:
    """Texts as PostgreSQL reads an array of them."""
    return "{" + ",".join('"' + t.replace("\\", "\\\\").replace('"', '\\"') + '"' for t in texts) + "}"


def _bytes(text: str | None) -> bytes | None:
    """As libpq takes it: it would end a text at its first NUL."""
    if text is None:
        return None
    if "\0" in text:
        raise ValueError("a NUL character cannot be stored; `canonical.plain` makes it visible")
    return text.encode()


def _checked(pgconn: PGconn, result: PGresult, expected: ExecStatus) -> PGresult:
    if result.status != expected:
        raise _error(pgconn, result)
    return result


def _error(pgconn: PGconn, result: PGresult) -> psycopg.Error:
    """What psycopg would raise; a connection that ended says nothing about whether the statement was done."""
    if pgconn.status != ConnStatus.OK:
        return psycopg.OperationalError(pgconn.get_error_message())
    return error_from_result(result)
