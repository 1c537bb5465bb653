"""Reads for the page about health: what a person's runs wait for and how long, each part in a query or two.

All of it is counted from stored rows, over the runs that the person may see. Nothing here is kept or estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import (
    CharField,
    Count,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    Func,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
)
from django.db.models.functions import Cast, Coalesce, Concat, Greatest, Least

from accounts.models import User
from approvals.models import Decision, Request, RequestState
from runs.access import visible_runs
from runs.machine.expiry import QUARTER, SOON
from runs.models import CLOSED, Event, Obligation, Run
from runs.queries import found_later


@dataclass(frozen=True, kw_only=True)
class Counted:
    """How many there are; of the one that has waited longest, since when, and which run it belongs to."""

    number: int = 0
    since: datetime | None = None
    run: str = ""


def _open(person: User) -> QuerySet[Run]:
    return visible_runs(person).exclude(state__in=CLOSED).order_by()


def by_state(person: User) -> dict[str, Counted]:
    """Every state in which there are runs, and since when the one that is longest in it."""
    rows = visible_runs(person).order_by().values("state").annotate(number=Count("pk"), oldest=Min("since"))
    return {row["state"]: Counted(number=row["number"], since=row["oldest"]) for row in rows}


def by_reason(person: User) -> dict[str, Counted]:
    """Every reason for which a person is needed; a run that has several counts for each."""
    rows = visible_runs(person).exclude(reasons=[]).order_by()
    told = rows.annotate(reason=Func(F("reasons"), function="unnest", output_field=CharField()))
    found = told.values("reason").annotate(number=Count("pk"), oldest=Min("since"))
    return {row["reason"]: Counted(number=row["number"], since=row["oldest"]) for row in found}


def work(person: User, now: datetime, served: Iterable[str]) -> dict[str, Counted]:
    """What stands between runs and a worker: `due` and nobody has taken it, `unserved` of these, `left` by a worker
    whose lease ended, and `held` by one now.
    """
    free = Q(lease_until__isnull=True) | Q(lease_until__lte=now)
    due = free & Q(wake_at__lte=now)
    queue = Concat(Value("agent."), "agent__name", Value("."), "agent_version", output_field=CharField())
    came = Greatest("wake_at", Coalesce("lease_until", "wake_at"))
    runs = _open(person).annotate(queue=queue, came=came)
    parts = {
        "due": (due, "came"),
        "unserved": (due & ~Q(queue__in=list(served)), "came"),
        "left": (due & Q(lease_until__isnull=False), "lease_until"),
        "held": (Q(lease_until__gt=now), "at"),
    }
    return _counted(runs, parts)


def approvals(person: User, now: datetime) -> dict[str, Counted]:
    """Runs that wait for approval: `waiting` for a decision, of these `soon` at the end of their time, those whose end
    has come and is not `recorded`, and `unasked`: nobody is asked at the moment.
    """
    asked = Request.objects.filter(subject=OuterRef("subject"), state=RequestState.PENDING)
    runs = _open(person).filter(state="waiting_approval")
    runs = runs.annotate(subject=Concat("id", Value(":"), Cast("plan_version", CharField())))
    runs = runs.annotate(
        opened=Subquery(asked.values("opened_at")[:1]), ends=Subquery(asked.values("expires_at")[:1])
    )
    quarter = ExpressionWrapper((F("ends") - F("opened")) / QUARTER, output_field=DurationField())
    runs = runs.annotate(near=F("ends") - Least(Value(SOON, output_field=DurationField()), quarter))
    stands = Q(ends__gt=now)
    parts = {
        "waiting": (stands, "opened"),
        "soon": (stands & Q(near__lte=now), "ends"),
        "recorded": (Q(ends__lte=now), "ends"),
        "unasked": (Q(ends__isnull=True), "since"),
    }
    return _counted(runs, parts)


def requests_ended(person: User, since: datetime) -> list[tuple[str, bool, int]]:
    """How requests for approval ended from then on: the state, whether anybody had decided anything, and how many."""
    kind = ContentType.objects.get_for_model(Run)
    ended = Request.objects.filter(
        object_type=kind, object_pk__in=visible_runs(person).values("pk"), closed_at__gte=since
    )
    answered = Exists(Decision.objects.filter(request=OuterRef("pk")))
    rows = (
        ended.annotate(answered=answered).values("state", "answered").order_by().annotate(number=Count("pk"))
    )
    return [(row["state"], row["answered"], row["number"]) for row in rows]


def obligations(person: User, now: datetime) -> dict[str, Counted]:
    """What runs still owe: `open`, and of that `overdue`. Not what the successor of a restarted run took over."""
    left = Obligation.objects.filter(run__in=visible_runs(person).values("pk"), discharged_seq__isnull=True)
    left = left.exclude(~Q(found_later()), run__state="restarted").order_by()
    opened = Event.objects.filter(run_id=OuterRef("run_id"), seq=OuterRef("opened_seq")).values("at")[:1]
    return _counted(
        left.annotate(opened=Subquery(opened)),
        {"open": (Q(), "opened"), "overdue": (Q(due_at__lte=now), "due_at")},
        run="run_id",
    )


def _counted(
    rows: QuerySet[Any], parts: Mapping[str, tuple[Q, str]], *, run: str = "pk"
) -> dict[str, Counted]:
    """Each part, counted and with its oldest by that column, in one query over the rows."""
    asked: dict[str, Any] = {}
    for name, (which, column) in parts.items():
        # An aggregate takes no empty filter, and a condition on the key leaves no row out.
        only = which or Q(**{f"{run}__isnull": False})
        asked[f"{name}_number"] = Count(run, filter=only)
        asked[f"{name}_since"] = Min(column, filter=only)
        first = ArrayAgg(run, order_by=column, filter=only)
        asked[f"{name}_run"] = Func(first, template="(%(expressions)s)[1]", output_field=CharField())
    found = rows.aggregate(**asked)
    return {
        name: Counted(
            number=found[f"{name}_number"], since=found[f"{name}_since"], run=found[f"{name}_run"] or ""
        )
        for name in parts
    }
