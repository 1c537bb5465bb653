"""Loading a run for a person and a purpose is the permission check: without it there is no object to act on."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.contenttypes.models import ContentType
from django.db.models import Case, F, Q, QuerySet, Value, When

from accounts.guards import note_held
from accounts.models import Tenant, User
from accounts.rights import Denial, Right, held_here, holding, objects_with, tenants_with, why_not
from runs.models import Agent, Run, Statement


class RunNotFound(Exception):
    """No run of this id exists for this person: one of a foreign tenant answers just as one that never was."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(run_id)


class NotPermitted(Exception):
    """The person may see the run and may not do this. `denial` says which right is missing."""

    def __init__(self, run: Run, denial: Denial) -> None:
        self.run, self.denial = run, denial
        super().__init__(denial.sentence)


def permits(person: User, right: Right) -> Q:
    """The runs on which this person holds the right: on the run, its agent or its tenant. A subquery, read anew."""
    on_run = held_here(person, right, Run) & Q(tenant__in=person.tenants())
    return on_run | Q(agent__in=objects_with(person, right, Agent))


def visible_runs(person: User) -> QuerySet[Run]:
    """The runs that this person may see, rights read now, in one query whatever the number of runs."""
    return Run.objects.filter(permits(person, Right.VIEW_RUNS)).select_related("agent", "tenant", "principal")


def permitted(person: User, rights: Sequence[Right], run_ids: Sequence[str]) -> dict[Right, frozenset[str]]:
    """On which of these runs the person holds each right, now: one query for a page of any length."""
    said = {
        right.value: Case(When(permits(person, right), then=Value(True)), default=Value(False))
        for right in rights
    }
    rows = list(Run.objects.filter(pk__in=run_ids).annotate(**said).values_list("pk", *said))
    return {
        right: frozenset(row[0] for row in rows if row[place]) for place, right in enumerate(rights, start=1)
    }


def run_for(person: User, run_id: str, right: Right = Right.VIEW_RUNS) -> Run:
    """The run, for a person who may do this with it, now. Raises RunNotFound, NotPermitted."""
    kind = Value(ContentType.objects.get_for_model(Run).pk)
    seen = holding(person, Value(Right.VIEW_RUNS.value), kind, F("pk"))
    known = Run.objects.select_related("agent", "tenant", "principal").annotate(seen=seen)
    # One query for a run of others as for one that never was: neither the answer nor its time tells them apart.
    run = known.filter(pk=run_id).first()
    if run is None or not run.seen:
        raise RunNotFound(run_id)
    note_held(person=person.pk, object_pk=run.pk)
    if right is not Right.VIEW_RUNS and (denial := why_not(person, right, run)):
        raise NotPermitted(run, denial)
    return run


def agents_for(person: User, right: Right) -> QuerySet[Agent]:
    """The agents on which this person holds the right, on the agent or its tenant."""
    return objects_with(person, right, Agent).order_by("name")


def statements_for(person: User) -> QuerySet[Statement]:
    """Every version of what is held for agents, organisations and runs that this person reads or looks after.

    One query. Whoever reads one agent reads what is held for all agents of its tenant.
    """
    agents, tenants = Q(), Q(pk__in=tenants_with(person, Right.SEE_AUDIT).values("pk"))
    for right in (Right.VIEW_RUNS, Right.MANAGE_POLICIES, Right.REVOKE_CONSTRAINTS):
        agents |= Q(pk__in=agents_for(person, right).values("pk"))
        tenants |= Q(pk__in=tenants_with(person, right).values("pk"))
    whole = Q(tenant__in=Tenant.objects.filter(tenants))
    read = Agent.objects.filter(agents | whole)
    of_tenant = whole | Q(tenant__in=read.values("tenant"))
    return Statement.objects.filter(
        Q(run__in=visible_runs(person).values("pk"))
        | Q(run=None, agent__in=read)
        | Q(of_tenant, run=None, agent=None)
    ).select_related("by", "agent__tenant", "run", "tenant")
