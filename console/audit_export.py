"""The audit log as a file: CSV for spreadsheets, JSON lines for programs. Written row by row while it is read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.translation import get_language, override
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.rights import Right, tenants_with
from console.audit_frame import Row
from console.audit_log import Filters, all_of, sources
from runs.clock import database_now

COLUMNS: Final = (
    "at", "who", "kind", "did", "on", "result", "why", "saw", "reason", "via", "ip", "request", "details",
)  # fmt: skip
#: What a spreadsheet takes for the beginning of a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def response(request: HttpRequest, person: User, kind: str) -> StreamingHttpResponse:
    """The file as it is written. The head says what was asked for, by whom, in which zone, and what is left out."""
    filters = Filters.of(request)
    lines = _in_one_language(KINDS[kind](_head(person, filters), _records(person, filters)))
    # A server that is asynchronous would read an ordinary iterator to its end first.
    content = _one_by_one(lines) if isinstance(request, ASGIRequest) else lines
    answer = StreamingHttpResponse(content, content_type=f"{_TYPES[kind]}; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="audit.{kind}"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


def _in_one_language(lines: Iterator[str]) -> Iterator[str]:
    """The lines in the language of the request, which is over when most of them are written."""
    language = get_language()

    def line() -> str | None:
        with override(language):
            return next(lines, None)

    return iter(line, None)


async def _one_by_one(lines: Iterator[str]) -> AsyncIterator[str]:
    take = sync_to_async(lambda: next(lines, None))
    while (line := await take()) is not None:
        yield line


def _head(person: User, filters: Filters) -> dict[str, Any]:
    whole = list(tenants_with(person, Right.SEE_AUDIT).values_list("slug", flat=True))
    return {
        "title": _("Audit log"),
        "made_at": database_now().isoformat(),
        "made_by": person.shown_name,
        "zone": "UTC",
        "tenants": list(person.tenants().values_list("slug", flat=True)),
        "whole_log_of": whole,
        "filter": filters.values(),
        "columns": list(COLUMNS),
    }


def _records(person: User, filters: Filters) -> Iterator[dict[str, str]]:
    return (_record(entry) for entry in all_of(sources(person, filters)))


def _record(entry: Row) -> dict[str, str]:
    details = "; ".join(f"{name}: {value}" for name, value in entry.get("details", []))
    shown = {
        "at": entry["at"].isoformat(timespec="milliseconds"), "who": entry["actor"], "kind": entry["kind"],
        "did": entry["did"], "on": entry["subject"], "result": entry["result"], "why": entry.get("why", ""),
        "saw": entry.get("seen", ""), "reason": entry.get("reason", ""), "via": entry.get("via", ""),
        "ip": entry.get("ip", ""), "request": entry.get("request_id", ""), "details": details,
    }  # fmt: skip
    return {name: str(shown[name]) for name in COLUMNS}


def _csv(head: dict[str, Any], records: Iterator[dict[str, str]]) -> Iterator[str]:
    for name, value in head.items():
        if name != "columns":
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield _line([f"# {name}", text])
    yield _line(list(COLUMNS))
    for record in records:
        yield _line(list(record.values()))


def _line(cells: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow([harmless(cell) for cell in cells])
    return out.getvalue()


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: what begins like one begins with an apostrophe instead."""
    bare = cell.lstrip(" \u00a0\u200b\ufeff")
    return f"'{cell}" if bare.startswith(_FORMULA) else cell


def _json_lines(head: dict[str, Any], records: Iterator[dict[str, str]]) -> Iterator[str]:
    yield json.dumps({"head": head}, ensure_ascii=False) + "\n"
    for record in records:
        yield json.dumps(record, ensure_ascii=False) + "\n"


KINDS: Final[dict[str, Callable[[dict[str, Any], Iterator[dict[str, str]]], Iterator[str]]]] = {
    "csv": _csv,
    "jsonl": _json_lines,
}
_TYPES: Final = {"csv": "text/csv", "jsonl": "application/jsonl"}
