"""Constraints: what makes two the same one, their digest, and what a source says about one now."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

import msgspec

from runs.machine import state as s
from runs.machine.canonical import canonical, digest
from runs.machine.events import Actor, Term


class Became(StrEnum):
    """What became of an accepted constraint at its source."""

    STANDS = "stands"
    WITHDRAWN = "withdrawn"
    AMENDED = "amended"
    UNREACHABLE = "unreachable"  #: the source could not be asked, so nobody knows


class SourceNow(msgspec.Struct, frozen=True, kw_only=True):
    """What the source of a constraint says now. `term` is how it states an amended one; `why` and `by` tell of the
    change, or why the source could not be asked.
    """

    became: Became = Became.STANDS
    term: Term | None = None
    why: str = ""
    by: Actor | None = None


STANDS = SourceNow()
NOT_ASKED = SourceNow(became=Became.UNREACHABLE, why="its source was not asked")


def identity(term: Term) -> str:
    """Equal for the same constraint of a source, whatever it says by now. Without a name its text is what it is."""
    return _identity(term.source_kind, term.source_ref, term.name or term.text)


# Every check of a run asks for each of its constraints, and again for each that is stated.
@lru_cache(maxsize=4096)
def _identity(kind: str, ref: str, which: str) -> str:
    return canonical([kind, ref, which])


def said(term: Term) -> str:
    """What it says to people and to code, as one text: either may be what was changed."""
    return f"{term.text} [{term.predicate}]" if term.predicate else term.text


def constraints_digest(constraints: Iterable[s.Constraint]) -> str:
    """One digest over the constraints in force: those that were not withdrawn, as they were accepted."""
    return digest(
        "constraints", canonical([[c.number, _said(c.term)] for c in constraints if not c.withdrawn])
    )


def term_digest(term: Term) -> str:
    """Of all that a constraint says."""
    return digest("constraint", canonical(_said(term)))


def _said(term: Term) -> dict[str, str]:
    """What a constraint says. Fields that came later count only where they say something: older digests stay."""
    fields: dict[str, str] = msgspec.to_builtins(term)
    return {name: text for name, text in fields.items() if text or name not in ("name", "predicate")}
