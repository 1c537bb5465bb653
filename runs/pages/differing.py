"""Which parts of a value differ from how it was before, from what to what, and by how much."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.machine.references import same
from runs.pages.values import flat

#: Parts that a sentence names; the values themselves stand in full beside it or in the events.
NAMED: Final = 3
LONGEST: Final = 100  #: characters of one value
_NUMBER: Final = re.compile(r"-?\d{1,30}(\.\d{1,30})?")
_WHOLE: Final = "$"


def differing(was: str, now: str) -> str:
    """The parts that differ, for use inside a sentence: “total 10.00 → 12.50 (+2.50), status open → sent”. Empty where
    the values are the same.
    """
    if same(was, now):
        return ""
    parts = [_part(path, old, new) for path, old, new in _parts(was, now)]
    if not parts:
        return _("it is written in another way")
    text = _(", ").join(parts[:NAMED])
    more = len(parts) - NAMED
    if more <= 0:
        return text
    also = ngettext("%(parts)s and %(number)d more part", "%(parts)s and %(number)d more parts", more)
    return also % {"parts": text, "number": more}


def _parts(was: str, now: str) -> list[tuple[str, str | None, str | None]]:
    """Path, before and after of each part that differs, in the order of the value as it is now."""
    old, new = _flat(was), _flat(now)
    paths = [*new, *(path for path in old if path not in new)]
    found = ((path, old.get(path), new.get(path)) for path in paths)
    return [(path, before, after) for path, before, after in found if before != after]


def _flat(text: str) -> dict[str, str]:
    rows: list[dict[str, Any]] = flat(text)
    return {row["path"]: row["value"] for row in rows}


def _part(path: str, was: str | None, now: str | None) -> str:
    facts = {"path": path, "was": _shown(was), "now": _shown(now)}
    text = _("%(was)s → %(now)s") if path in ("", _WHOLE) else _("%(path)s %(was)s → %(now)s")
    by = difference(was or "", now or "")
    return f"{text % facts} ({by})" if by else text % facts


def _shown(value: str | None) -> str:
    if value is None:
        return "–"
    return value if len(value) <= LONGEST else f"{value[:LONGEST].rstrip()}…"


def difference(was: str, now: str) -> str:
    """By how much a number differs, with its sign; empty where the two are not numbers."""
    if not (_NUMBER.fullmatch(was) and _NUMBER.fullmatch(now)):
        return ""
    return f"{Decimal(now) - Decimal(was):+f}"
