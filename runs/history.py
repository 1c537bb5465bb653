"""A run's history as lines: what the planner is told of the events behind the state. Pure, and in one language.

Nothing rests on these words. They are cut where they are long; the log has all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

import msgspec
from msgspec import Raw

from runs.agents import Entry
from runs.machine import events as e
from runs.machine.canonical import plain

LONGEST_LINE: Final = 300
LONGEST_VALUE: Final = 120
#: Fields that say nothing to a planner: digests, keys, processes, what the state has in full.
_UNTOLD: Final = frozenset(
    {
        "terms", "sender", "key", "keys", "digest", "conditions", "conditions_digest", "arguments_digest", "document",
        "submission", "request", "boot", "uptime", "person", "input", "constraints", "inherited", "rounds", "tenant",
        "principal", "creator", "lineage", "start_key", "right", "excluded", "evidence", "value", "artifact",
    }
)  # fmt: skip
#: Kinds that happen over and over: a summary says how often.
ROUTINE: Final = frozenset(
    {
        "ObservationRecorded", "RevalidationPassed", "EffectIntended", "EffectSent", "EffectDispatched",
        "EffectQueried", "AttemptFailed", "ArtifactKept", "PlanApprovedByPolicy",
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class History:
    """The summary of the events up to `upto`, and those since then, the oldest first."""

    upto: int = 0
    summary: str = ""
    since: tuple[Entry, ...] = ()


def entries(log: Iterable[e.Recorded]) -> list[Entry]:
    """Every event of the log as one line."""
    return [
        Entry(seq=r.seq, at=r.at, kind=type(r.event).__name__, text=_cut(_told(r.event), LONGEST_LINE))
        for r in log
    ]


def _told(event: e.Event) -> str:
    values = ((name, getattr(event, name)) for name in event.__struct_fields__ if name not in _UNTOLD)
    return "; ".join(f"{name} {text}" for name, value in values if (text := _value(value)))


def _value(value: Any) -> str:
    match value:
        case None | "" | () | []:
            return ""
        case bool() | int() | str():
            return _cut(plain(str(value)), LONGEST_VALUE)
        case datetime():
            return value.isoformat(timespec="seconds")
        case timedelta():
            return f"{value.total_seconds():g} s"
        case Raw():
            return _cut(e.text_of(value), LONGEST_VALUE)
        case e.Check():
            return "" if value.passed else f"{value.name} {value.subject}".strip()
        case msgspec.Struct():
            parts = (_value(getattr(value, name)) for name in value.__struct_fields__)
            return " ".join(part for part in parts if part)
        case tuple() | list():
            return _cut(", ".join(text for x in value if (text := _value(x))), LONGEST_LINE)
        case _:
            return _cut(plain(str(value)), LONGEST_VALUE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def line(entry: Entry) -> str:
    """One entry for a reader."""
    return f"{entry.seq} {entry.at.isoformat(timespec='seconds')} {entry.kind}: {entry.text}".rstrip(": ")


class Condensed:
    """The summariser that is code: how often what happened, and the newest of what is no routine, word by word."""

    version = "condensed/1"

    def summarise(self, entries: Sequence[Entry], *, limit: int) -> str:
        """The same entries always give the same text."""
        counted = [
            _counted(kind, list(found)) for kind, found in groupby(_by_kind(entries), lambda x: x.kind)
        ]
        told = [line(entry) for entry in entries if entry.kind not in ROUTINE]
        head = "\n".join(counted)
        room = limit - len(head.encode()) - 1
        return "\n".join([head, *newest(told, room, cost=lambda text: len(text.encode()) + 1)])


def _by_kind(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda x: x.kind)


def _counted(kind: str, found: list[Entry]) -> str:
    return f"{kind}: {len(found)} in events {found[0].seq} to {found[-1].seq}"


CONDENSED: Final = Condensed()


def newest(lines: Sequence[str], room: int, *, cost: Any) -> list[str]:
    """The newest lines that fit, in their order; where some do not, the first line says how many."""
    kept, left = list[str](), room - cost(_left_out(len(lines)))
    if sum(map(cost, lines)) <= room:
        return list(lines)
    for text in reversed(lines):
        left -= cost(text)
        if left < 0:
            break
        kept.append(text)
    said = [_left_out(len(lines) - len(kept))] if room >= cost(_left_out(len(lines))) else []
    return [*said, *reversed(kept)]


def _left_out(number: int) -> str:
    return f"({number} earlier lines are left out)"


def lines(history: History) -> Iterator[str]:
    """All of a history, the oldest first."""
    if history.summary:
        yield f"Events 1 to {history.upto}, in short:"
        yield from history.summary.splitlines()
    if history.since:
        yield f"Events since {history.upto}:" if history.upto else "Events:"
        yield from map(line, history.since)
