"""Reads for pages: which runs wait for a person and how pressing each is, who holds which right, is the sweep alive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.db.models import (
    Case,
    CharField,
    Count,
    Exists,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Cast, Concat

from accounts.models import User
from accounts.rights import Place, Right, Tenanted
from approvals.models import Request, RequestState
from runs.access import agents_for, visible_runs
from runs.clock import database_now
from runs.models import CLOSED, Effect, Obligation, PlanVersion, Run, Sweep, Worker

TIERS: Final = ("critical", "high", "medium", "low")
#: States in which nobody but a person keeps what was promised: a restarted run's successor took that over.
ENDED: Final = ("succeeded", "cancelled")
SOON: Final = timedelta(minutes=15)

#: The views of the inbox. Each run that waits for a person is in "all" and in exactly one of the three after it.
_IN_DOUBT = Q(state="unknown") | Q(state="needs_human", reasons__contains=["effect_unknown"])
VIEWS: Final[dict[str, Q]] = {
    "all": Q(state__in=["unknown", "needs_human", "waiting_approval"]) | Q(owes=True),
    "unknown": _IN_DOUBT,
    "needs_human": (Q(state="needs_human") & ~_IN_DOUBT) | Q(owes=True),
    "waiting_approval": Q(state="waiting_approval"),
}


def annotated(person: User, now: datetime) -> QuerySet[Any]:
    """The runs that this person may see, each with what makes it pressing: `hard_doubt`, `soft_doubt`, `owes`,
    `irreversible`, `expires_at` of its pending request while that stands, and `tier` (index in TIERS).
    """
    doubt = Effect.objects.filter(run_id=OuterRef("pk"), status="unknown")
    owed = Obligation.objects.filter(run_id=OuterRef("pk"), discharged_seq__isnull=True)
    plan = PlanVersion.objects.filter(run_id=OuterRef("pk"), version=OuterRef("plan_version"))
    runs = visible_runs(person).annotate(
        subject=Concat("id", Value(":"), Cast("plan_version", CharField())),
        hard_doubt=Exists(doubt.filter(reversible=False)),
        soft_doubt=Exists(doubt),
        owes=Case(When(state__in=ENDED, then=Exists(owed)), default=Value(False)),
        irreversible=Subquery(plan.values("irreversible")[:1]),
        effects_planned=Subquery(plan.values("steps")[:1]),
    )
    asked = Request.objects.filter(subject=OuterRef("subject"), state=RequestState.PENDING)
    pending = asked.filter(expires_at__gt=now)
    return runs.annotate(expires_at=Subquery(pending.values("expires_at")[:1])).annotate(tier=_tier(now))


def _tier(now: datetime) -> Case:
    hard_waiting = Q(state="waiting_approval", irreversible__gt=0)
    soon = hard_waiting & Q(expires_at__lte=now + SOON)
    return Case(
        When(Q(hard_doubt=True) | soon, then=Value(0)),
        When(Q(soft_doubt=True) | hard_waiting, then=Value(1)),
        When(state="needs_human", then=Value(2)),
        default=Value(3),
        output_field=IntegerField(),
    )


def by_urgency(runs: QuerySet[Any]) -> QuerySet[Any]:
    """The most pressing first: by risk, then effects that only a person can settle, then the oldest stop."""
    alone = Case(When(state="needs_human", soft_doubt=True, then=Value(0)), default=Value(1))
    return runs.order_by("tier", alone, "since", "pk")


def closed_since(start: datetime) -> Q:
    """Runs that ended from that moment on."""
    return Q(state__in=CLOSED, since__gte=start)


def actionable(person: User) -> Q:
    """The runs whose next step this person may take, by rights read in the same query."""
    settles = Q(soft_doubt=True, agent__in=agents_for(person, Right.RECONCILE_EFFECTS))
    operates = agents_for(person, Right.OPERATE_RUNS)
    stopped = Q(state="needs_human", soft_doubt=False, agent__in=operates)
    renews = Q(state="waiting_approval", expires_at__isnull=True, agent__in=operates)
    return settles | stopped | renews | Q(owes=True, agent__in=operates) | _decides(person)


def _decides(person: User) -> Q:
    asked = Request.objects.filter(subject=OuterRef("subject"), state=RequestState.PENDING)
    mine = asked.exclude(excluded__has_key=str(person.pk))
    waits = Q(state="waiting_approval", expires_at__isnull=False)
    return waits & Q(Exists(mine), agent__in=agents_for(person, Right.APPROVE_PLANS))


def counts(runs: QuerySet[Any], views: dict[str, Q]) -> dict[str, int]:
    """How many of the runs each view lists, in one query."""
    return runs.aggregate(**{name: Count("pk", filter=view) for name, view in views.items()})


def waiting_count(person: User, now: datetime) -> int:
    """How many runs the inbox lists for this person at first: for operators those that they can act on."""
    waiting = annotated(person, now).filter(VIEWS["all"])
    operates = agents_for(person, Right.OPERATE_RUNS).exists()
    return (waiting.filter(actionable(person)) if operates else waiting).count()


def doubts(run_ids: Sequence[str]) -> dict[str, list[Effect]]:
    """The unknown effects of these runs, the first of each run first."""
    found: dict[str, list[Effect]] = {}
    for effect in Effect.objects.filter(run_id__in=run_ids, status="unknown").order_by("run_id", "number"):
        found.setdefault(effect.run_id, []).append(effect)
    return found


def last_requests(runs: Sequence[Run]) -> dict[str, Request]:
    """The newest request about the plan version that each run shows now."""
    subjects = {f"{run.pk}:{run.plan_version}": run.pk for run in runs if run.state == "waiting_approval"}
    tenants = {run.tenant_id for run in runs}
    found = Request.objects.filter(tenant_id__in=tenants, subject__in=subjects).order_by("opened_at")
    return {subjects[request.subject]: request for request in found}


def owed(run_ids: Sequence[str]) -> dict[str, list[str]]:
    """What these runs promised and have not done."""
    found: dict[str, list[str]] = {}
    left = Obligation.objects.filter(run_id__in=run_ids, discharged_seq__isnull=True).order_by("number")
    for run_id, text in left.values_list("run_id", "text"):
        found.setdefault(run_id, []).append(text)
    return found


_HOLDERS = """
SELECT r.name, h.id FROM unnest(%(rights)s::text[]) AS r(name)
CROSS JOIN LATERAL handoff_right_holders(%(tenant)s, r.name, %(type)s, %(object)s) AS h(id)
"""


def holders_of(rights: Sequence[Right], obj: Tenanted) -> dict[Right, list[User]]:
    """Who may do each of these things with the object, now, by name: two queries for any number of rights."""
    place = Place.of(obj)
    asked: dict[str, Any] = {
        "rights": [right.value for right in rights],
        "tenant": place.tenant_id,
        "type": place.object_type_id,
        "object": place.object_pk,
    }
    with connection.cursor() as cursor:
        cursor.execute(_HOLDERS, asked)
        pairs: list[tuple[str, Any]] = cursor.fetchall()
    people = User.objects.filter(pk__in={id_ for _, id_ in pairs}).order_by("display_name", "username")
    held = {(name, id_) for name, id_ in pairs}
    everyone = list(people)
    return {right: [p for p in everyone if (right.value, p.pk) in held] for right in rights}


def readiness() -> dict[str, Any]:
    """When the last sweep ended, and the queues that live workers read: {"last_sweep_at", "served"}."""
    last = Sweep.objects.values_list("at", flat=True).first()
    since = database_now() - settings.HANDOFF_DURATIONS.version_grace
    served = Worker.objects.filter(last_seen_at__gt=since).values_list("serves", flat=True)
    return {"last_sweep_at": last, "served": sorted({queue for queues in served for queue in queues})}


def excluded_from(person: User, run_ids: Sequence[str]) -> frozenset[str]:
    """Those of the runs whose pending request this person may not decide, by the request's own rule."""
    mine = Request.objects.filter(state=RequestState.PENDING, excluded__has_key=str(person.pk))
    wanted = set(run_ids)
    subjects = (subject.partition(":")[0] for subject in mine.values_list("subject", flat=True))
    return frozenset(run for run in subjects if run in wanted)
