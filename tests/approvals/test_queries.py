"""What pages and sweeps read, and in how many queries."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Membership, User
from accounts.rights import Right, withdraw_right
from approvals.binding import Change
from approvals.decisions import void
from approvals.queries import awaiting, history, open_requests, overdue
from tests.accounts.world import NOW
from tests.approvals.world import REJECT, STANDS, Desk, choose

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_list_of_what_awaits_a_person_is_one_query(desk: Desk) -> None:
    mia = desk.approver()
    first = desk.request(expires_at=NOW + timedelta(minutes=5))
    rest = [desk.request() for _ in range(3)]
    with CaptureQueriesContext(connection) as asked:
        found = list(awaiting(person=mia, now=NOW))
    assert len(asked) == 1 and found[0] == first and set(found) == {first, *rest}


def test_nothing_awaits_who_may_not_or_has_decided(desk: Desk) -> None:
    mia, other = desk.approver(), Desk()
    by_group = desk.world.person()
    desk.world.group(by_group, right=Right.APPROVE_PLANS)
    asked, decided = desk.request(needed=2), desk.request(needed=2)
    desk.request(excluded={mia.pk: "author"})
    desk.request(needed=0)
    choose(desk.request(), desk.approver(), REJECT)
    choose(decided, mia)
    assert list(awaiting(person=mia, now=NOW)) == [asked]
    assert list(awaiting(person=mia, now=NOW + STANDS)) == []
    assert decided in awaiting(person=by_group, now=NOW)
    assert list(awaiting(person=desk.world.person(Right.VIEW_RUNS), now=NOW)) == []
    assert list(awaiting(person=other.approver(), now=NOW)) == []


def test_a_right_or_membership_that_ended_empties_the_list(desk: Desk) -> None:
    mia, kim, lin = desk.approver(), desk.approver(), desk.approver()
    desk.request()
    withdraw_right(to=mia, right=Right.APPROVE_PLANS, obj=desk.world.agent, actor=None, now=NOW)
    Membership.objects.filter(user=kim).update(active=False)
    User.objects.filter(pk=lin.pk).update(is_active=False)
    assert [list(awaiting(person=person, now=NOW)) for person in (mia, kim, lin)] == [[], [], []]


def test_a_subjects_history_keeps_each_request_with_its_decisions_and_cause(desk: Desk) -> None:
    mia, kim = desk.approver("Mia"), desk.approver("Kim")
    old = desk.request(needed=2)
    choose(old, mia)
    choose(old, kim, now=NOW + timedelta(seconds=1))
    void(request=old, changes=[Change(what="digest", before="a", after="b")], now=NOW)
    new = desk.request(subject=old.subject, now=NOW + timedelta(minutes=1))
    desk.request()
    with CaptureQueriesContext(connection) as asked:
        found = history(tenant_id=desk.world.tenant.pk, subjects=[old.subject])
        people = [[decision.person for decision in request.decisions.all()] for request in found]
    assert (found, people, len(asked)) == ([new, old], [[], [mia, kim]], 2)
    assert found[1].cause == {"changes": [{"what": "digest", "from": "a", "to": "b"}]}
    assert list(open_requests(tenant_id=desk.world.tenant.pk, subjects=[old.subject])) == [new]


def test_another_tenant_reads_none_of_it(desk: Desk) -> None:
    request, foreign = desk.request(), Desk().world.tenant.pk
    assert history(tenant_id=foreign, subjects=[request.subject]) == []
    assert not open_requests(tenant_id=foreign, subjects=[request.subject]).exists()


def test_overdue_are_the_open_ones_whose_time_is_over(desk: Desk) -> None:
    pending, valid, rejected = desk.request(), desk.request(), desk.request()
    choose(valid, desk.approver())
    choose(rejected, desk.approver(), REJECT)
    assert set(overdue(now=NOW + STANDS)) == {pending, valid}
    assert not overdue(now=NOW + STANDS - timedelta(seconds=1)).exists()
