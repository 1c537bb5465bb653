"""Whether an approval still stands, and what of its binding changed."""

from __future__ import annotations

import pytest

from accounts.models import Membership
from accounts.rights import DenialKind, Right, withdraw_right
from approvals.binding import Change, binding_changes, cause_of, changes_in
from approvals.decisions import consume, void
from approvals.models import RequestState
from approvals.standing import standing, who_may_decide
from tests.accounts.world import NOW
from tests.approvals.world import CONDITIONS, STANDS, Desk, choose

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_it_stands_while_those_who_gave_it_may(desk: Desk) -> None:
    request, mia = desk.request(), desk.approver()
    assert not standing(request_id=request.pk, now=NOW).stands
    request = choose(request, mia).request
    now = standing(request_id=request.pk, now=NOW)
    assert now.stands and now.holding == (mia,) and now.lost == ()
    assert standing(request_id=consume(request=request, now=NOW).pk, now=NOW).stands


def test_a_lost_right_ends_it_and_names_who_lost_what(desk: Desk) -> None:
    request, mia, kim = desk.request(needed=2), desk.approver("Mia"), desk.approver("Kim")
    choose(request, mia)
    request = choose(request, kim).request
    withdraw_right(to=mia, right=Right.APPROVE_PLANS, obj=desk.world.agent, actor=kim, now=NOW)
    now = standing(request_id=request.pk, now=NOW)
    assert not now.stands and now.holding == (kim,)
    assert [(loss.person, loss.kind) for loss in now.lost] == [(mia, DenialKind.RIGHT_MISSING)]
    voided = void(request=request, changes=now.changes(), now=NOW)
    (change,) = changes_in(voided.cause)
    assert (change.before, change.after, change.who) == ("approve_plans", "right_missing", str(mia.pk))


def test_an_approval_that_was_not_needed_does_not_fill_in(desk: Desk) -> None:
    request, mia, kim = desk.request(), desk.approver(), desk.approver()
    request = choose(request, mia).request
    choose(request, kim)
    Membership.objects.filter(user=mia).update(active=False)
    now = standing(request_id=request.pk, now=NOW)
    assert not now.stands and now.lost[0].kind == DenialKind.NOT_MEMBER


def test_it_ends_with_its_time_and_a_policy_needs_nobody(desk: Desk) -> None:
    request = desk.request(needed=0)
    assert standing(request_id=request.pk, now=NOW).stands
    later = standing(request_id=request.pk, now=NOW + STANDS)
    assert later.expired and not later.stands and later.state == RequestState.VALID


def test_who_may_decide_leaves_out_who_has_a_part_in_it(desk: Desk) -> None:
    mia, kim = desk.approver("Mia"), desk.approver("Kim")
    request = desk.request(excluded={mia.pk: "author"})
    assert who_may_decide(request) == [kim]
    withdraw_right(to=kim, right=Right.APPROVE_PLANS, obj=desk.world.agent, actor=None, now=NOW)
    assert who_may_decide(request) == []


@pytest.mark.parametrize(
    ("digest", "conditions", "expected"),
    [
        ("v1:aaaa", CONDITIONS, []),
        ("v1:bbbb", CONDITIONS, [("digest", "v1:aaaa", "v1:bbbb")]),
        ("v1:aaaa", CONDITIONS.replace("W/1", "W/2"), [("resources.order-7", "W/1", "W/2")]),
        ("v1:aaaa", CONDITIONS.replace('"v1"', '"v2"'), [("policy", "v1", "v2")]),
        (
            "v1:aaaa",
            CONDITIONS.replace("order-7", "order-8"),
            [("resources.order-7", "W/1", None), ("resources.order-8", None, "W/1")],
        ),
        ("v1:aaaa", CONDITIONS + " ", [("conditions", CONDITIONS, CONDITIONS + " ")]),
        (
            "v1:aaaa",
            CONDITIONS.replace('{"order-7":"W/1"}', "{}"),
            [("resources", None, "{}"), ("resources.order-7", "W/1", None)],
        ),
    ],
)
def test_each_changed_value_is_named_from_and_to(
    desk: Desk, digest: str, conditions: str, expected: list[tuple[str, str | None, str | None]]
) -> None:
    changes = binding_changes(request=desk.request(), digest=digest, conditions=conditions)
    assert [(change.what, change.before, change.after) for change in changes] == expected
    assert changes_in(cause_of(changes)) == changes


def test_numbers_too_large_for_a_double_are_compared_digit_by_digit(desk: Desk) -> None:
    request = desk.request(conditions='{"id":321588685835436831}')
    (change,) = binding_changes(
        request=request, digest=request.digest, conditions='{"id":321588685835436832}'
    )
    assert change == Change(what="id", before="321588685835436831", after="321588685835436832")
