"""Loading a run for a person and a purpose is the permission check: without it there is no object to act on."""

from __future__ import annotations

from django.db.models import QuerySet

from accounts.models import User
from accounts.rights import Denial, Right, objects_with, why_not
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


def visible_runs(person: User) -> QuerySet[Run]:
    """The runs that this person may see, rights read now, in one query whatever the number of runs."""
    agents = objects_with(person, Right.VIEW_RUNS, Agent)
    return Run.objects.filter(agent__in=agents).select_related("agent", "tenant", "principal")


def run_for(person: User, run_id: str, right: Right = Right.VIEW_RUNS) -> Run:
    """The run, for a person who may do this with it, now. Raises RunNotFound, NotPermitted."""
    run = Run.objects.select_related("agent", "tenant", "principal").filter(pk=run_id).first()
    if run is None or why_not(person, Right.VIEW_RUNS, run.agent):
        raise RunNotFound(run_id)
    if denial := why_not(person, right, run.agent):
        raise NotPermitted(run, denial)
    return run


def agents_for(person: User, right: Right) -> QuerySet[Agent]:
    """The agents on which this person holds the right."""
    return objects_with(person, right, Agent).order_by("name")
