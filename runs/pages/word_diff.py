"""What changed from one text to another, word by word; in scripts that put no blanks between words, sign by sign."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Final, NamedTuple

_UNSPACED: Final = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
#: Each sign of such a script, each run of blanks, each word, each other sign. Together they are the text.
_TOKEN: Final = re.compile(rf"[{_UNSPACED}]|\s+|[^\W{_UNSPACED}]+|[^\w\s]")
#: Beyond this many pairs of words the search takes longer than a page may: then all of it is shown as replaced.
_MOST_PAIRS: Final = 4_000_000


class Change(StrEnum):
    """What became of a part of a text."""

    KEPT = "kept"
    REMOVED = "removed"
    ADDED = "added"


class Part(NamedTuple):
    """A stretch of text with one fate."""

    change: Change
    text: str


def word_diff(before: str, after: str) -> tuple[Part, ...]:
    """The parts in reading order, none empty: kept and removed together are `before`, kept and added `after`."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if len(old) * len(new) > _MOST_PAIRS:
        return (Part(Change.REMOVED, before), Part(Change.ADDED, after))
    return tuple(part for part in _parts(old, new) if part.text)


def _parts(old: list[str], new: list[str]) -> Iterator[Part]:
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield Part(Change.KEPT, "".join(old[a:b]))
        else:
            yield Part(Change.REMOVED, "".join(old[a:b]))
            yield Part(Change.ADDED, "".join(new[c:d]))
