"""Old versions of events, and how each becomes the next: a log that was written once can be read for ever.

An upcast gets the fields of a body and returns those of the version after it. Fields are `Raw`: the very bytes, so
that what came from outside, and every document that has a digest, stays to the letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Raw

Fields = dict[str, Raw]
Upcast = Callable[[Fields], Fields]

#: (type, version) -> what makes a body of that version one of the version after it. Complete: every version below
#: the one that is written now has an entry here or in REFUSED, or the launch gates fail.
UPCASTS: Final[dict[tuple[str, int], Upcast]] = {}
#: (type, version) -> why a log that holds it is refused.
REFUSED: Final[dict[tuple[str, int], str]] = {}

_fields = msgspec.json.Decoder(Fields)
_encoder = msgspec.json.Encoder()


class NoWay(LookupError):
    """There is no upcast from a version. `why` says why, where that was decided."""

    def __init__(self, type_: str, version: int) -> None:
        self.type, self.version = type_, version
        self.why = REFUSED.get((type_, version), "")
        super().__init__(self.why or f"there is no way from {type_} version {version} to the next")


def upcast(body: str, *, type_: str, version: int, to: int) -> str:
    """The body as the version that is written now. Raises NoWay; msgspec.DecodeError for what is no object."""
    fields = _fields.decode(body)
    for old in range(version, to):
        fields = _step(type_, old)(fields)
    return _encoder.encode(fields).decode()


def _step(type_: str, version: int) -> Upcast:
    try:
        return UPCASTS[type_, version]
    except KeyError:
        raise NoWay(type_, version) from None


def missing(versions: Mapping[str, int]) -> list[tuple[str, int]]:
    """Every released version of these types (name -> the one written now) that is neither migrated nor refused."""
    below = ((name, version) for name, now in versions.items() for version in range(1, now))
    return [key for key in below if key not in UPCASTS and key not in REFUSED]
