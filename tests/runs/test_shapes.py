"""A query that was written once answers for everybody and at any time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db.models import Q, QuerySet

from accounts.models import User
from accounts.rights import Right, grant_right, withdraw_right
from runs import actions
from runs.access import permits
from runs.clock import database_now
from runs.models import Run
from runs.queries import VIEWS, actionable, annotated, counted_for, operates
from runs.shapes import Shape
from tests.pages.conftest import time_to_decide
from tests.people import House

__all__ = ["time_to_decide"]


def test_each_persons_count_is_that_of_the_query_written_for_them(house: House) -> None:
    waits, other = house.waiting("1"), house.approved("2")
    house.start("3")
    grant_right(to=house.viewer, right=Right.OPERATE_RUNS, obj=other, actor=None, now=database_now())
    now = database_now()
    for run in (waits, other):
        actions.claim_run(person=house.approver, run_id=run.pk, submission=uuid4())
    actions.assign_run(person=house.operator, run_id=waits.pk, to=house.second, submission=uuid4())
    everybody = (house.operator, house.approver, house.second, house.viewer, house.stranger)
    for at in (now, now + timedelta(days=1)):  # when no request stands any more
        counted = [counted_for(person, at).waiting for person in everybody]
        assert counted == [_written(person, at) for person in everybody]
        mine = [counted_for(person, at).mine for person in everybody]
        assert mine == [0, 1 if at == now else 0, 1, 0, 0]  # a claim lapses, an assignment does not
    assert counted_for(house.approver, now).waiting == 1 and counted_for(house.stranger, now).waiting == 0
    house.decide(waits, house.approver)
    assert counted_for(house.approver, now).waiting == 0


def _written(person: User, now: datetime) -> int:
    waiting = annotated(person, now).filter(VIEWS["all"])
    return (waiting.filter(actionable(person)) if _operates(person) else waiting).count()


def _operates(person: User) -> bool:
    return Run.objects.filter(permits(person, Right.OPERATE_RUNS)).exists()


def test_a_right_that_is_taken_away_counts_no_more(house: House) -> None:
    house.start("1")
    assert operates(house.operator) and not operates(house.approver)
    withdraw_right(
        to=house.operator, right=Right.OPERATE_RUNS, obj=house.agent, actor=None, now=database_now()
    )
    assert not operates(house.operator)


def test_times_are_those_of_the_question_however_far_from_its_own(house: House) -> None:
    run = house.start("1")

    def recent(person: User, now: datetime) -> QuerySet[Any]:
        made = Q(created_at__gt=now - timedelta(hours=1), created_at__lte=now)
        return Run.objects.filter(made, principal=person.pk)

    shape = Shape(recent)
    assert shape.count(house.operator, run.created_at) == 1
    assert shape.count(house.operator, run.created_at - timedelta(seconds=1)) == 0
    assert shape.count(house.operator, run.created_at + timedelta(hours=1)) == 0
    assert shape.count(house.approver, run.created_at) == 0
