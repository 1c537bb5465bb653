"""Who works on which run, or was asked to: what counts now. For people, who else looks at it; no run asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Q, QuerySet

from accounts.models import User
from runs.models import Working, WorkingKind


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Of one run: who claims it, where that has not lapsed, and to whom it is assigned."""

    claim: Working | None = None
    assignment: Working | None = None


def lapses(claim: Working) -> datetime:
    """When the claim is over, unless its person does something about the run before."""
    return claim.active_at + settings.HANDOFF_DURATIONS.claim_lapses


def _counting(now: datetime) -> QuerySet[Working]:
    """What is open and has not lapsed."""
    since = now - settings.HANDOFF_DURATIONS.claim_lapses
    kept = Q(kind=WorkingKind.ASSIGNMENT) | Q(active_at__gt=since)
    return Working.objects.filter(kept, ended_at__isnull=True)


def workers(run_ids: Iterable[str], now: datetime) -> dict[str, Workers]:
    """Who works on each of the runs, where anybody does: one query for any number of them."""
    found: dict[str, dict[str, Working]] = {}
    for row in _counting(now).filter(run_id__in=list(run_ids)).select_related("person", "by"):
        found.setdefault(row.run_id, {})[row.kind] = row
    return {
        run: Workers(claim=kinds.get(WorkingKind.CLAIM), assignment=kinds.get(WorkingKind.ASSIGNMENT))
        for run, kinds in found.items()
    }


def workers_of(run_id: str, now: datetime) -> Workers:
    """The same of one run."""
    return workers([run_id], now).get(run_id, Workers())


def worked_on_by(person: User, now: datetime) -> Q:
    """The runs that this person claims, or that are assigned to them."""
    return Q(pk__in=_counting(now).filter(person_id=person.pk).values("run_id"))


def worked_on_by_nobody(now: datetime) -> Q:
    """The runs that nobody claims and that are assigned to nobody."""
    return ~Q(pk__in=_counting(now).values("run_id"))
