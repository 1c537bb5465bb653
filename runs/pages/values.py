"""Stored JSON as rows for people: every path with its whole value, numbers exactly as they were stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.utils.translation import pgettext

from runs.machine.leaves import Number, leaves

Row = dict[str, Any]


def flat(text: str) -> list[Row]:
    """[{path, value, type}] of canonical JSON text, in its order. Text that is no JSON is one row."""
    try:
        return [{"path": path, **_leaf(value)} for path, value in leaves(text)]
    except json.JSONDecodeError:
        return [{"path": "", "value": text, "type": ""}]


def _leaf(value: object) -> Row:
    match value:
        case Number():
            return {"value": str(value), "type": pgettext("type of a value", "number")}
        case str():
            return {"value": value or '""', "type": _text_type(value)}
        case bool():
            return {"value": json.dumps(value), "type": pgettext("type of a value", "yes or no")}
        case None:
            return {"value": "null", "type": pgettext("type of a value", "nothing")}
        case _:
            return {"value": json.dumps(value), "type": pgettext("type of a value", "empty")}


def _text_type(value: str) -> str:
    if len(value) <= 80:
        return pgettext("type of a value", "text")
    return pgettext("type of a value", "text of %(length)d characters") % {"length": len(value)}


def indented(text: str) -> str:
    """The same JSON with line breaks, numbers in their stored digits; text that is no JSON as it is."""
    try:
        value = json.loads(text, parse_int=Number, parse_float=Number)
    except json.JSONDecodeError:
        return text
    return "".join(_pieces(value, "\n"))


def _pieces(value: object, line: str) -> Iterator[str]:
    if isinstance(value, Number):
        yield str(value)
    elif isinstance(value, dict) and value:
        named = ((f"{_text(name)}: ", item) for name, item in value.items())
        yield from _block("{", named, "}", line)
    elif isinstance(value, list) and value:
        yield from _block("[", (("", item) for item in value), "]", line)
    else:
        yield _text(value)


def _block(start: str, items: Iterable[tuple[str, object]], end: str, line: str) -> Iterator[str]:
    before = start
    for name, item in items:
        yield f"{before}{line}  {name}"
        yield from _pieces(item, f"{line}  ")
        before = ","
    yield f"{line}{end}"


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
