"""Reads for pages: which runs wait for a person and how pressing each is, who holds which right, is the sweep alive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import DatabaseError, connection
from django.db.models import (
    BooleanField,
    Case,
    CharField,
    Count,
    DateTimeField,
    Exists,
    ExpressionWrapper,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Cast, Concat, TruncDay

from accounts.models import User
from accounts.rights import Place, Right, Tenanted
from approvals.models import Decision, Request, RequestState, Verdict
from approvals.queries import barred_by_tenant
from runs.access import agents_for, permits, visible_runs
from runs.clock import database_now
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.expiry import SOON
from runs.models import CLOSED, HELD, Effect, Event, Obligation, PlanVersion, Run, Sweep, Worker
from runs.shapes import Shape
from runs.working import worked_on_by

log = structlog.get_logger(__name__)

TIERS: Final = ("critical", "high", "medium", "low")
#: States in which nobody but a person keeps what was promised: a restarted run's successor took that over.
ENDED: Final = ("succeeded", "cancelled")

_FOR_PEOPLE: Final = ("unknown", "needs_human", "waiting_approval")
#: The views of the inbox. Each run that waits for a person is in "all" and in exactly one of the three after it.
_IN_DOUBT = Q(state="unknown") | Q(state="needs_human", reasons__contains=["effect_unknown"])
#: A run that is over keeps no other reason than evidence against its record that a person has to settle.
DISPUTED_AND_OVER: Final = Q(state__in=CLOSED) & ~Q(reasons=[])
#: Something that the run owes had to be done by now, and the run itself waits for no person.
OVERDUE: Final = Q(overdue=True) & ~Q(state__in=_FOR_PEOPLE)
VIEWS: Final[dict[str, Q]] = {
    "all": Q(state__in=_FOR_PEOPLE) | Q(owes=True) | Q(overdue=True) | DISPUTED_AND_OVER,
    "unknown": _IN_DOUBT,
    "needs_human": (Q(state="needs_human") & ~_IN_DOUBT) | Q(owes=True) | OVERDUE | DISPUTED_AND_OVER,
    "waiting_approval": Q(state="waiting_approval"),
}


def annotated(person: User, now: datetime) -> QuerySet[Any]:
    """The runs that this person may see, each with what makes it pressing: `hard_doubt`, `soft_doubt`, `owes`,
    `overdue`, `irreversible`, `expires_at` of its pending request while that stands, and `tier` (index in TIERS).
    """
    doubt = Effect.objects.filter(run_id=OuterRef("pk"), status="unknown")
    owed = Obligation.objects.filter(run_id=OuterRef("pk"), discharged_seq__isnull=True)
    plan = PlanVersion.objects.filter(run_id=OuterRef("pk"), version=OuterRef("plan_version"))
    runs = visible_runs(person).annotate(
        subject=Concat("id", Value(":"), Cast("plan_version", CharField())),
        hard_doubt=Exists(doubt.filter(reversible=False)),
        soft_doubt=Exists(doubt),
        owes=Case(
            When(state__in=ENDED, then=Exists(owed)),
            When(state="restarted", then=Exists(owed.filter(found_later()))),
            default=Value(False),
        ),
        overdue=ExpressionWrapper(Q(pk__in=_overdue(now)), output_field=BooleanField()),
        irreversible=Subquery(plan.values("irreversible")[:1]),
        effects_planned=Subquery(plan.values("steps")[:1]),
    )
    asked = Request.objects.filter(subject=OuterRef("subject"), state=RequestState.PENDING)
    pending = asked.filter(expires_at__gt=now)
    return runs.annotate(expires_at=Subquery(pending.values("expires_at")[:1])).annotate(tier=_tier(now))


def _overdue(now: datetime) -> QuerySet[Any]:
    """The runs that owe something which had to be done by now: found at once for all, since few do."""
    late = Obligation.objects.filter(discharged_seq__isnull=True, due_at__lte=now)
    return late.exclude(~Q(found_later()), run__state="restarted").values("run_id")


def found_later() -> Exists:
    """Owed since people found something about a run that was over: no successor took that over."""
    at = Event.objects.filter(run_id=OuterRef("run_id"), seq=OuterRef("opened_seq"))
    return Exists(at.filter(type=e.ContradictionSettled.__name__))


def _tier(now: datetime) -> Case:
    hard_waiting = Q(state="waiting_approval", irreversible__gt=0)
    soon = hard_waiting & Q(expires_at__lte=now + SOON)
    return Case(
        When(Q(hard_doubt=True) | soon, then=Value(0)),
        When(Q(soft_doubt=True) | hard_waiting, then=Value(1)),
        When(Q(state="needs_human") | Q(overdue=True) | DISPUTED_AND_OVER, then=Value(2)),
        default=Value(3),
        output_field=IntegerField(),
    )


def by_urgency(runs: QuerySet[Any]) -> QuerySet[Any]:
    """The most pressing first: by risk, then effects that only a person can settle, then what is overdue, then the
    oldest stop.
    """
    alone = Case(When(state="needs_human", soft_doubt=True, then=Value(0)), default=Value(1))
    late = Case(When(overdue=True, then=Value(0)), default=Value(1))
    return runs.order_by("tier", alone, late, "since", "pk")


def closed_today(now: datetime) -> Q:
    """Runs that ended on the day of `now`, in UTC. The database finds its beginning, so that a `Shape` can ask it."""
    return Q(state__in=CLOSED, since__gte=TruncDay(Value(now, output_field=DateTimeField()), tzinfo=UTC))


def actionable(person: User) -> Q:
    """The runs whose next step this person may take, by rights read in the same query."""
    finds, operates = permits(person, Right.RECONCILE_EFFECTS), permits(person, Right.OPERATE_RUNS)
    settles = Q(soft_doubt=True) & finds
    decides = operates | permits(person, Right.RESTART_RUNS) | permits(person, Right.CANCEL_RUNS)
    decides |= Q(reasons__overlap=["authority_lost", "budget_exhausted"]) & permits(person, Right.START_RUNS)
    stopped = Q(state="needs_human", soft_doubt=False) & decides
    renews = Q(state="waiting_approval", expires_at__isnull=True) & operates
    owes = (Q(owes=True) | OVERDUE) & (operates | permits(person, Right.ATTEST_EFFECTS))
    return (DISPUTED_AND_OVER & finds) | settles | stopped | renews | owes | _decides(person)


def _decides(person: User) -> Q:
    asked = Request.objects.filter(subject=OuterRef("subject"), state=RequestState.PENDING)
    given = Decision.objects.filter(request=OuterRef("pk"), person_id=person.pk, verdict=Verdict.APPROVE)
    barred = Q(excluded__has_key=str(person.pk)) | barred_by_tenant(person)
    mine = asked.exclude(barred).filter(~Exists(given))
    waits = Q(state="waiting_approval", expires_at__isnull=False)
    return waits & Q(Exists(mine)) & permits(person, Right.APPROVE_PLANS)


def counts(runs: QuerySet[Any], views: dict[str, Q]) -> dict[str, int]:
    """How many of the runs each view lists, in one query."""
    return runs.aggregate(**{name: Count("pk", filter=view) for name, view in views.items()})


def _waiting(person: User, now: datetime) -> QuerySet[Any]:
    return annotated(person, now).filter(VIEWS["all"])


def _counted(person: User, now: datetime, listed: Q) -> QuerySet[Any]:
    """What waits for people, each with whether the inbox lists it at first, and whether it is this person's."""
    whether = BooleanField()
    found: QuerySet[Any] = _waiting(person, now).annotate(
        listed=ExpressionWrapper(listed, output_field=whether),
        mine=ExpressionWrapper(worked_on_by(person, now), output_field=whether),
    )
    return found


_COUNTS: Final = ("listed", "mine")
_WATCHING: Final = Shape(lambda person, now: _counted(person, now, Q(pk__isnull=False)), *_COUNTS)
_OPERATING: Final = Shape(lambda person, now: _counted(person, now, actionable(person)), *_COUNTS)
_AGENTS: Final = Shape(lambda person, _: agents_for(person, Right.OPERATE_RUNS))
_RUNS: Final = Shape(lambda person, _: Run.objects.filter(permits(person, Right.OPERATE_RUNS)))


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What the nav counts for a person, of the runs that wait for people."""

    waiting: int | None  #: those that the inbox lists at first: for operators the ones that they can act on
    mine: int | None  #: those that the person claims, or that are assigned to them


def counted_for(person: User, now: datetime) -> Counted:
    """The counts of the nav: one query. None where they could not be counted: no page is lost with them."""
    try:
        shape = _OPERATING if operates(person) else _WATCHING
        waiting, mine = shape.counts(person, now)
    except DatabaseError:
        log.exception("nav_counts_failed")
        return Counted(waiting=None, mine=None)
    return Counted(waiting=waiting, mine=mine)


def operates(person: User) -> bool:
    """Whether there is an agent or a run that this person operates."""
    return _AGENTS.any(person) or _RUNS.any(person)


def doubts(run_ids: Sequence[str]) -> dict[str, list[Effect]]:
    """The unknown effects of these runs, the first of each run first."""
    found: dict[str, list[Effect]] = {}
    for effect in Effect.objects.filter(run_id__in=run_ids, status="unknown").order_by("run_id", "number"):
        found.setdefault(effect.run_id, []).append(effect)
    return found


def stands_elsewhere(identity: s.Identity, effect: s.Effect) -> str:
    """Another run of the lineage whose effect stands, or is open, under the same operation; empty where none does."""
    held = Effect.objects.filter(
        tenant_id=identity.tenant, lineage=identity.lineage, system=effect.system, status__in=HELD
    )
    for other in held.exclude(run_id=identity.run).order_by("run_id", "number"):
        suffix = f"#{other.round}" if other.round else ""
        if f"{other.system} {other.operation_id.removesuffix(suffix)}" == effect.operation:
            return f"{other.run_id} E-{other.number}"
    return ""


def disputed(run_ids: Sequence[str]) -> dict[str, tuple[int, str]]:
    """The oldest evidence of each run that contradicts its record and is not settled: effect, reference."""
    kinds = (e.EvidenceKept.__name__, e.ContradictionSettled.__name__)
    told = Event.objects.filter(run_id__in=run_ids, type__in=kinds, body__isnull=False).order_by(
        "run_id", "-seq"
    )
    found: dict[str, tuple[int, str]] = {}
    settled: set[tuple[str, int]] = set()
    for row in told:
        event = e.decode(seq=row.seq, type_=row.type, version=row.version, body=row.body or "")
        match event:
            case e.ContradictionSettled(settles=settles):
                settled |= {(row.run_id, seq) for seq in settles}
            case e.EvidenceKept() if event.contradicts and (row.run_id, row.seq) not in settled:
                found[row.run_id] = event.effect, event.reference
    return found


def last_requests(runs: Sequence[Run]) -> dict[str, Request]:
    """The newest request about the plan version that each run shows now."""
    subjects = {f"{run.pk}:{run.plan_version}": run.pk for run in runs if run.state == "waiting_approval"}
    tenants = {run.tenant_id for run in runs}
    found = Request.objects.filter(tenant_id__in=tenants, subject__in=subjects).order_by("opened_at")
    return {subjects[request.subject]: request for request in found}


def owed(run_ids: Sequence[str]) -> dict[str, list[Obligation]]:
    """What these runs promised and have not done, what is due first of each run first; not what a successor keeps."""
    found: dict[str, list[Obligation]] = {}
    left = Obligation.objects.filter(run_id__in=run_ids, discharged_seq__isnull=True)
    left = left.exclude(~Q(found_later()), run__state="restarted")
    for row in left.order_by(F("due_at").asc(nulls_last=True), "number"):
        found.setdefault(row.run_id, []).append(row)
    return found


_HOLDERS = """
SELECT u.*, w.held FROM (
  SELECT h.id, array_agg(r.name) AS held FROM unnest(%(rights)s::text[]) AS r(name)
  CROSS JOIN LATERAL handoff_right_holders(%(tenant)s, r.name, %(type)s, %(object)s) AS h(id) GROUP BY h.id
) AS w JOIN accounts_user u ON u.id = w.id ORDER BY u.display_name, u.username
"""


def holders_of(rights: Sequence[Right], obj: Tenanted) -> dict[Right, list[User]]:
    """Who may do each of these things with the object, now, by name: one query for any number of rights."""
    place = Place.of(obj)
    asked: dict[str, Any] = {
        "rights": [right.value for right in rights],
        "tenant": place.tenant_id,
        "type": place.object_type_id,
        "object": place.object_pk,
    }
    people = list(User.objects.raw(_HOLDERS, asked))
    return {right: [p for p in people if right.value in p.held] for right in rights}  # type: ignore[attr-defined]


_HOLDERS_ANY = """
SELECT DISTINCT h.id FROM runs_run r CROSS JOIN unnest(%(rights)s::text[]) AS w(name)
CROSS JOIN LATERAL handoff_right_holders(r.tenant_id, w.name, %(type)s, r.id) AS h(id) WHERE r.id = ANY(%(runs)s)
"""


def holders_of_any(rights: Sequence[Right], run_ids: Sequence[str]) -> list[User]:
    """Who holds one of the rights on one of the runs, now, by name: two queries for any number of runs."""
    kind = ContentType.objects.get_for_model(Run).pk
    asked: dict[str, Any] = {"rights": [x.value for x in rights], "type": kind, "runs": list(run_ids)}
    with connection.cursor() as cursor:
        cursor.execute(_HOLDERS_ANY, asked)
        ids = [id_ for (id_,) in cursor.fetchall()]
    return list(User.objects.filter(pk__in=ids).order_by("display_name", "username"))


def readiness() -> dict[str, Any]:
    """When the last sweep ended, and the queues that live workers read: {"last_sweep_at", "served"}."""
    last = Sweep.objects.values_list("at", flat=True).first()
    since = database_now() - settings.HANDOFF_DURATIONS.version_grace
    served = Worker.objects.filter(last_seen_at__gt=since).values_list("serves", flat=True)
    return {"last_sweep_at": last, "served": sorted({queue for queues in served for queue in queues})}


def excluded_from(person: User, run_ids: Sequence[str]) -> frozenset[str]:
    """Those of the runs whose pending request this person may not decide, by the request's own rule."""
    barred = Q(excluded__has_key=str(person.pk)) | barred_by_tenant(person)
    mine = Request.objects.filter(barred, state=RequestState.PENDING)
    wanted = set(run_ids)
    subjects = (subject.partition(":")[0] for subject in mine.values_list("subject", flat=True))
    return frozenset(run for run in subjects if run in wanted)


def approved_by(person: User, requests: Iterable[Request]) -> frozenset[str]:
    """The runs of those of the requests that this person has approved already."""
    given = Decision.objects.filter(
        request__in=[r.pk for r in requests], person=person, verdict=Verdict.APPROVE
    )
    subjects: Iterable[str] = given.values_list("request__subject", flat=True)
    return frozenset(subject.partition(":")[0] for subject in subjects)
