"""Effects whose outcome nobody knows: since when, and whether the outside was asked once its answer counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from accounts.models import User
from runs.access import visible_runs
from runs.machine import events as e
from runs.models import Effect, Event

#: Effects that are looked at one by one: from when one may be believed to be absent stands in its events.
LOOKED_AT: Final = 500


@dataclass(frozen=True, kw_only=True)
class InDoubt:
    """An effect whose outcome nobody knows: its latest send, from when "not found" counts, and if a query came then."""

    run: str
    number: int
    reversible: bool
    sent_at: datetime
    settled_at: datetime | None  #: None: its tool cannot be asked, or its intent was erased
    asked: bool = False

    def unasked(self, now: datetime) -> bool:
        """Whether it could have been asked about for good, and was not."""
        return self.settled_at is not None and self.settled_at <= now and not self.asked


@dataclass(frozen=True, kw_only=True)
class Doubts:
    """The effects whose outcome nobody knows: how many, how many of them cannot be undone, and those looked at one by
    one, the longest sent first.
    """

    number: int
    irreversible: int
    looked_at: tuple[InDoubt, ...]


def doubts(person: User, now: datetime) -> Doubts:
    """The unknown effects of the runs that the person may see."""
    unknown = Effect.objects.filter(run__in=visible_runs(person).values("pk"), status="unknown").order_by()
    found = unknown.aggregate(number=Count("run_id"), hard=Count("run_id", filter=Q(reversible=False)))
    return Doubts(number=found["number"], irreversible=found["hard"], looked_at=_looked_at(unknown, now))


def _looked_at(unknown: QuerySet[Effect], now: datetime) -> tuple[InDoubt, ...]:
    of_run = Event.objects.filter(run_id=OuterRef("run_id"))
    sent = of_run.filter(seq=OuterRef("send_seq")).values("at")[:1]
    intent = of_run.filter(seq=OuterRef("intent_seq"))
    rows = unknown.annotate(
        sent_at=Subquery(sent),
        intent=Subquery(intent.values("body")[:1]),
        intent_version=Subquery(intent.values("version")[:1]),
    ).order_by("sent_at", "run_id", "number")
    found = [_in_doubt(row) for row in rows[:LOOKED_AT]]
    asks = _asks([one for one in found if one.unasked(now)])
    return tuple(replace(one, asked=_asked(one, asks)) for one in found)


def _in_doubt(row: Any) -> InDoubt:
    settled = None
    if row.intent is not None:
        told = e.decode(
            seq=row.intent_seq, type_=e.EffectIntended.__name__, version=row.intent_version, body=row.intent
        )
        assert isinstance(told, e.EffectIntended)
        settled = row.sent_at + told.terms.settles_after if told.terms.queryable else None
    return InDoubt(
        run=row.run_id, number=row.number, reversible=row.reversible, sent_at=row.sent_at, settled_at=settled
    )


def _asks(overdue: Sequence[InDoubt]) -> dict[tuple[str, int], datetime]:
    """When each of them was asked about last, of queries since the first of them could be believed."""
    since = min((one.settled_at for one in overdue if one.settled_at), default=None)
    if since is None:
        return {}
    asks = Event.objects.filter(
        run_id__in={one.run for one in overdue},
        type=e.EffectQueried.__name__,
        at__gte=since,
        body__isnull=False,
    )
    found: dict[tuple[str, int], datetime] = {}
    for row in asks.order_by("run_id", "seq"):
        told = e.decode(seq=row.seq, type_=row.type, version=row.version, body=row.body or "")
        found[row.run_id, getattr(told, "effect", 0)] = row.at
    return found


def _asked(one: InDoubt, asks: Mapping[tuple[str, int], datetime]) -> bool:
    at = asks.get((one.run, one.number))
    return at is not None and one.settled_at is not None and at >= one.settled_at
