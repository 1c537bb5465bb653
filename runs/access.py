"""Loading a run for a person and a purpose is the permission check: without it there is no object to act on."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Case, Q, QuerySet, Value, When

from accounts.models import User
from accounts.rights import Denial, Right, held_here, objects_with, why_not
from runs.models import Agent, Run


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
    run = Run.objects.select_related("agent", "tenant", "principal").filter(pk=run_id).first()
    if run is None or why_not(person, Right.VIEW_RUNS, run):
        raise RunNotFound(run_id)
    if denial := why_not(person, right, run):
        raise NotPermitted(run, denial)
    return run


def agents_for(person: User, right: Right) -> QuerySet[Agent]:
    """The agents on which this person holds the right, on the agent or its tenant."""
    return objects_with(person, right, Agent).order_by("name")
