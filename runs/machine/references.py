"""Long texts that stand in the storage: what stands for one in an event, found again and compared by content hash."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from runs.machine.canonical import canonical

#: The one key of a value whose text is kept as an artifact.
KEPT: Final = "kept_as_artifact"
HEAD: Final = 1000  #: so many characters of the text are shown in its place
_BEGINS: Final = f'{{"{KEPT}":'


class Referred(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that stands elsewhere: the hash of its bytes, how many they are, and how it begins."""

    hash: str
    head: str
    size: int


class _Stands(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kept_as_artifact: Referred


_decode = msgspec.json.Decoder(_Stands).decode


def content_hash(data: bytes) -> str:
    """`sha256:` and 64 hex digits over the bytes themselves."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def reference(text: str) -> str:
    """The canonical text that stands in an event for a long one."""
    data = text.encode()
    return canonical({KEPT: {"hash": content_hash(data), "size": len(data), "head": text[:HEAD]}})


def referred(text: str) -> Referred | None:
    """What the text refers to; None where it stands for itself."""
    if not text.startswith(_BEGINS):
        return None
    try:
        return _decode(text).kept_as_artifact
    except msgspec.MsgspecError:
        return None


def stands_for(value: Any) -> Referred | None:
    """As `referred`, for a value that was read from its text."""
    if not isinstance(value, dict) or KEPT not in value:
        return None
    try:
        return msgspec.convert(value, _Stands).kept_as_artifact
    except msgspec.MsgspecError:
        return None


def same(was: str, now: str) -> bool:
    """Whether two texts are of the same content, however each is kept."""
    return was == now or _hash_of(was) == _hash_of(now)


def _hash_of(text: str) -> str:
    stands = referred(text)
    return stands.hash if stands else content_hash(text.encode())
