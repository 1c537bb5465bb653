"""Canonical JSON, digests and idempotency keys.

Digests are taken once, over the canonical text that is stored, and never made again from what a database
gives back as JSON. Every digest names its algorithm, so that two algorithms can never be taken for each
other.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import rfc8785

ALGORITHM = "sha256"
KEY_TAG = "handoff-key/1"
MAX_SAFE = 2**53 - 1
WRITTEN_WITH_EXPONENT = 1e21
ESCAPED = "as_escaped_json"  #: the one key of a value that had no canonical form and was kept as text
_LONG = re.compile(r"\d{16}")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Uncanonical(ValueError):
    """The value has no canonical form. `path` names the offending place, such as `$.items[3].amount`."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path}: {why}")


def canonical(value: Any) -> str:
    """The RFC 8785 text of a JSON value, Unicode kept as it came. Raises Uncanonical with the path."""
    try:
        text = rfc8785.dumps(value).decode()
        # A float such as 1e20 is written like an integer that nobody could read back: refused as that is.
        offence = next(_offences(value, "$"), None) if _LONG.search(text) else None
    except RecursionError as error:
        raise Uncanonical("$", "it is nested too deeply") from error
    except (rfc8785.CanonicalizationError, UnicodeError) as error:
        path, why = next(_offences(value, "$"), ("$", str(error)))
        raise Uncanonical(path, why) from error
    if offence:
        raise Uncanonical(*offence)
    return text


def parse(text: str) -> Any:
    """Read JSON that must have a canonical form: duplicate keys and NaN are refused. Raises Uncanonical."""
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise Uncanonical("$", f"not JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise Uncanonical("$", "it is nested too deeply") from error
    except ValueError as error:
        if isinstance(error, Uncanonical):
            raise
        # Python reads no integer of more than some thousand digits.
        raise Uncanonical("$", "an integer beyond 2^53; write it as a string") from error


def digest(tag: str, text: str) -> str:
    """`sha256:` and 64 hex digits over the tag and the text; equal only for equal tags and bytes."""
    return f"{ALGORITHM}:{hashlib.sha256(f'handoff/{tag}/1\n{text}'.encode()).hexdigest()}"


def plain(text: str) -> str:
    """Text from outside as any store can hold it: NUL and half surrogate pairs become visible escapes."""
    return _UNSTORABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def idempotency_key(*, run_id: str, step: str, arguments: str, round_: int) -> str:
    """64 hex digits, the same for the same intent however often it is sent. `arguments` is canonical text."""
    parts = [KEY_TAG, run_id, step, arguments, *([str(round_)] if round_ else [])]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def round_suffix(operation_id: str, round_: int) -> str:
    """The operation id as the outside knows it in this round: `refund:order-1042#1` from round 1 on."""
    return f"{operation_id}#{round_}" if round_ else operation_id


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Uncanonical(f"$.{key}", "this key stands twice")
        found[key] = value
    return found


def _no_constant(name: str) -> Any:
    raise Uncanonical("$", f"{name} has no canonical form")


def _offences(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every place in the value that has no canonical form, with the reason."""
    match value:
        case None | bool():
            return
        case int() if abs(value) > MAX_SAFE:
            yield path, "an integer beyond 2^53; write it as a string"
        case float() if not math.isfinite(value):
            yield path, f"{value} has no canonical form"
        case float() if MAX_SAFE < abs(value) < WRITTEN_WITH_EXPONENT:
            yield path, "an integer beyond 2^53; write it as a string"
        case int() | float():
            return
        case str():
            yield from _lone_surrogates(value, path)
        case Mapping():
            yield from _mapping_offences(value, path)
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _offences(item, f"{path}[{index}]")
        case _:
            yield path, f"a {type(value).__name__} is not a JSON value"


def _mapping_offences(value: Mapping[Any, Any], path: str) -> Iterator[tuple[str, str]]:
    for key, item in value.items():
        if isinstance(key, str):
            yield from _lone_surrogates(key, f"{path}.(key)")
            yield from _offences(item, f"{path}.{key}")
        else:
            yield path, f"the key {key!r} is not a string"


def _lone_surrogates(text: str, path: str) -> Iterator[tuple[str, str]]:
    if any("\ud800" <= character <= "\udfff" for character in text):
        yield path, "half of a surrogate pair is no character"
