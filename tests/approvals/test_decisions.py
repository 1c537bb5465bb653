"""One request, and everything that can be decided about it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.db.utils import DatabaseError

from accounts.models import User
from accounts.rights import DenialKind, Right, withdraw_right
from approvals.binding import Change
from approvals.decisions import consume, expire, take_back, void
from approvals.models import Decision, Request, RequestState, Verdict
from approvals.outcomes import (
    AlreadyOpenError,
    AlreadyRecorded,
    ConflictError,
    DecisionRefusedError,
    ExpiredError,
    NotAllowedError,
    NotNeeded,
    NotOpenError,
    ReasonMissingError,
    Recorded,
    SeparationOfDutiesError,
    StaleError,
    SubmissionReusedError,
)
from tests.accounts.world import NOW, World
from tests.approvals.world import APPROVE, ASK, REJECT, STANDS, Desk, choose

pytestmark = pytest.mark.django_db
CHANGE = Change(what="resources.order-7", before="W/1", after="W/2")
LATER = NOW + timedelta(minutes=1)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def state_of(request: Request) -> str:
    return Request.objects.get(pk=request.pk).state


def test_one_approval_makes_it_valid(desk: Desk) -> None:
    request, mia = desk.request(), desk.approver("Mia")
    outcome = choose(request, mia)
    assert type(outcome) is Recorded
    assert (outcome.state, outcome.given, outcome.request.needed) == (RequestState.VALID, 1, 1)
    assert (outcome.decision.at, outcome.decision.person, outcome.decision.needed) == (NOW, mia, True)
    assert state_of(request) == "valid"


def test_a_quorum_counts_distinct_people(desk: Desk) -> None:
    request, mia, kim = desk.request(needed=2), desk.approver(), desk.approver()
    first = choose(request, mia)
    again = choose(request, mia)
    assert (first.state, first.given) == (RequestState.PENDING, 1)
    assert isinstance(again, AlreadyRecorded) and again.decision == first.decision
    second = choose(request, kim)
    assert (second.state, second.given) == (RequestState.VALID, 2)


@pytest.mark.parametrize(("verdict", "state"), [(REJECT, "rejected"), (ASK, "changes_asked")])
def test_one_person_ends_it_though_two_must_approve(desk: Desk, verdict: Verdict, state: str) -> None:
    request = desk.request(needed=2)
    choose(request, desk.approver())
    outcome = choose(request, desk.approver(), verdict, now=LATER)
    closed = Request.objects.get(pk=request.pk)
    assert (outcome.state, closed.state, closed.closed_at) == (state, state, LATER)


@pytest.mark.parametrize("verdict", [REJECT, ASK])
def test_a_rejection_and_a_wish_for_changes_need_words(desk: Desk, verdict: Verdict) -> None:
    request = desk.request()
    with pytest.raises(ReasonMissingError):
        choose(request, desk.approver(), verdict, reason=" \n")
    assert state_of(request) == "pending" and not Decision.objects.filter(request=request).exists()


def test_the_second_send_of_a_form_is_the_same_decision(desk: Desk) -> None:
    request, mia, submission = desk.request(), desk.approver(), uuid4()
    first = choose(request, mia, submission=submission)
    withdraw_right(to=mia, right=Right.APPROVE_PLANS, obj=desk.world.agent, actor=None, now=NOW)
    again = choose(request, mia, submission=submission, now=LATER)
    assert isinstance(again, AlreadyRecorded) and again.decision == first.decision
    assert (again.state, again.given) == (first.state, first.given)
    assert Decision.objects.filter(request=request).count() == 1


def test_a_forms_id_is_good_for_one_decision(desk: Desk) -> None:
    request, mia, submission = desk.request(), desk.approver(), uuid4()
    choose(request, mia, submission=submission)
    others: list[Callable[[], object]] = [
        lambda: choose(request, mia, REJECT, submission=submission),
        lambda: choose(request, desk.approver(), submission=submission),
        lambda: choose(desk.request(), mia, submission=submission),
    ]
    for other in others:
        with pytest.raises(SubmissionReusedError):
            other()


def test_who_agrees_too_late_is_told_so_and_does_not_count(desk: Desk) -> None:
    request, mia, kim = desk.request(), desk.approver(), desk.approver()
    first = choose(request, mia)
    late = choose(request, kim, now=LATER)
    assert isinstance(late, NotNeeded) and late.by == first.decision
    assert (late.decision.needed, late.given, late.state) == (False, 1, RequestState.VALID)
    consume(request=request, now=LATER)
    assert isinstance(choose(request, desk.approver(), now=LATER), NotNeeded)


@pytest.mark.parametrize(
    ("first", "then"), [(APPROVE, REJECT), (APPROVE, ASK), (REJECT, APPROVE), (ASK, APPROVE)]
)
def test_who_decides_otherwise_too_late_learns_who_when_and_what(
    desk: Desk, first: Verdict, then: Verdict
) -> None:
    request, mia = desk.request(), desk.approver("Mia")
    outcome = choose(request, mia, first)
    with pytest.raises(ConflictError) as refused:
        choose(request, desk.approver(), then, now=LATER)
    assert (refused.value.who, refused.value.when, refused.value.what) == (mia, NOW, outcome.state)
    assert "Mia" in refused.value.sentence
    assert Decision.objects.filter(request=request).count() == 1


def test_a_right_removed_a_second_ago_counts_as_removed(desk: Desk) -> None:
    request, mia = desk.request(), desk.approver()
    withdraw_right(to=mia, right=Right.APPROVE_PLANS, obj=desk.world.agent, actor=None, now=NOW)
    with pytest.raises(NotAllowedError) as refused:
        choose(request, mia)
    assert refused.value.denial.kind == DenialKind.RIGHT_MISSING
    assert state_of(request) == "pending"


def test_nothing_is_added_to_an_approval_by_somebody_who_may_not_any_more(desk: Desk) -> None:
    """It would make a quorum of people of whom one does not count. Who says no still can."""
    request, mia, kim = desk.request(needed=2), desk.approver("Mia"), desk.approver()
    choose(request, mia)
    withdraw_right(to=mia, right=Right.APPROVE_PLANS, obj=desk.world.agent, actor=None, now=NOW)
    with pytest.raises(StaleError) as refused:
        choose(request, kim)
    (change,) = refused.value.changes
    assert (change.what, change.after, change.who) == (
        "approvers.Mia",
        "right_missing:approve_plans",
        str(mia.pk),
    )
    assert state_of(request) == "pending"
    assert choose(request, kim, REJECT).state == RequestState.REJECTED


@pytest.mark.parametrize(
    "stranger",
    [lambda desk: World().person(Right.APPROVE_PLANS), lambda desk: desk.world.person(Right.VIEW_RUNS)],
    ids=["another tenant's approver", "a viewer"],
)
def test_who_may_not_decides_nothing(desk: Desk, stranger: Callable[[Desk], User]) -> None:
    with pytest.raises(NotAllowedError):
        choose(desk.request(), stranger(desk))


def test_who_has_a_part_in_it_cannot_decide_though_they_hold_the_right(desk: Desk) -> None:
    mia = desk.approver()
    request = desk.request(excluded={mia.pk: "the plan's author"})
    for verdict in (APPROVE, REJECT):
        with pytest.raises(SeparationOfDutiesError) as refused:
            choose(request, mia, verdict)
        assert "the plan's author" in refused.value.sentence


@pytest.mark.parametrize("seen", [{"digest": "v1:old"}, {"conditions_digest": "v1:old"}])
def test_what_was_not_seen_is_not_decided(desk: Desk, seen: dict[str, Any]) -> None:
    request = desk.request()
    with pytest.raises(StaleError) as refused:
        choose(request, desk.approver(), **seen)
    (change,) = refused.value.changes
    assert (change.before, change.after in (request.digest, request.conditions_digest)) == ("v1:old", True)
    assert state_of(request) == "pending"


def test_a_voided_request_says_what_changed(desk: Desk) -> None:
    request, mia = desk.request(needed=2), desk.approver()
    choose(request, mia)
    void(request=request, changes=[CHANGE], now=LATER)
    with pytest.raises(StaleError) as refused:
        choose(request, desk.approver(), now=LATER)
    assert refused.value.changes == (CHANGE,)
    assert refused.value.facts == {"resources.order-7": "W/1 -> W/2"}


def test_from_its_expiry_on_nothing_is_decided_or_used(desk: Desk) -> None:
    pending, valid = desk.request(), desk.request()
    choose(valid, desk.approver(), now=NOW + STANDS - timedelta(microseconds=1))
    for request in (pending, valid):
        with pytest.raises(ExpiredError):
            choose(request, desk.approver(), now=NOW + STANDS)
        with pytest.raises(NotOpenError):
            expire(request=request, now=NOW + STANDS - timedelta(microseconds=1))
    with pytest.raises(ExpiredError):
        consume(request=valid, now=NOW + STANDS)
    for request in (pending, valid):
        assert expire(request=request, now=NOW + STANDS).state == RequestState.EXPIRED
        with pytest.raises(ExpiredError):
            choose(request, desk.approver(), now=NOW + STANDS)


def test_a_policy_can_approve_alone(desk: Desk) -> None:
    request = desk.request(needed=0)
    assert state_of(request) == "valid"
    with pytest.raises(ConflictError) as refused:
        choose(request, desk.approver(), REJECT)
    assert refused.value.who is None
    late = choose(request, desk.approver())
    assert isinstance(late, NotNeeded) and late.by is None


def test_an_approval_is_used_once(desk: Desk) -> None:
    request = desk.request()
    with pytest.raises(NotOpenError):
        consume(request=request, now=NOW)
    choose(request, desk.approver())
    assert consume(request=request, now=LATER).closed_at == LATER
    agains: list[Callable[[], object]] = [
        lambda: consume(request=request, now=LATER),
        lambda: void(request=request, changes=[CHANGE], now=LATER),
    ]
    for again in agains:
        with pytest.raises(NotOpenError) as refused:
            again()
        assert refused.value.state == RequestState.CONSUMED


def test_an_approval_is_taken_back_by_who_gave_it_until_it_is_used(desk: Desk) -> None:
    request, mia, submission = desk.request(), desk.approver("Mia"), uuid4()
    choose(request, mia)
    back = partial(
        take_back, request=request, person=mia, reason="The wrong order.", submission=submission, now=LATER
    )
    with pytest.raises(NotOpenError):
        back(person=desk.approver(), submission=uuid4())
    taken = back()
    assert (taken.state, taken.given, state_of(request)) == (RequestState.TAKEN_BACK, 0, "taken_back")
    assert isinstance(back(), AlreadyRecorded)
    with pytest.raises(ConflictError) as refused:
        choose(request, desk.approver(), now=LATER)
    assert refused.value.who == mia
    used = desk.request()
    choose(used, mia)
    consume(request=used, now=LATER)
    with pytest.raises(NotOpenError):
        back(request=used, submission=uuid4())


def test_a_subject_has_one_open_request(desk: Desk) -> None:
    request = desk.request()
    with pytest.raises(AlreadyOpenError) as refused:
        desk.request(subject=request.subject)
    assert refused.value.request == request
    with pytest.raises(IntegrityError, match="approvals_one_open_request"), transaction.atomic():
        Request.objects.create(**{**_row(request), "id": uuid4()})
    void(request=request, changes=[CHANGE], now=LATER)
    assert desk.request(subject=request.subject).state == "pending"


def _row(request: Request) -> dict[str, object]:
    return {field.attname: getattr(request, field.attname) for field in Request._meta.concrete_fields}


def test_a_request_is_made_about_its_own_tenants_objects(desk: Desk) -> None:
    with pytest.raises(ValueError, match="another tenant"):
        desk.request(on=World().agent)


def test_the_database_refuses_to_rewrite_what_was_decided(desk: Desk) -> None:
    request = desk.request()
    decision = choose(request, desk.approver()).decision
    kept, mine = Request.objects.filter(pk=request.pk), Decision.objects.filter(pk=decision.pk)
    spoils: list[Callable[[], object]] = [
        lambda: mine.update(reason="another"),
        lambda: mine.delete(),
        lambda: kept.update(digest="v1:other"),
        lambda: kept.update(expires_at=NOW + 2 * STANDS),
        lambda: kept.update(needed=0),
        lambda: kept.update(state="pending"),
        lambda: kept.update(state="rejected", closed_at=NOW),
        lambda: kept.update(state="made_up"),
        lambda: kept.update(state="voided", closed_at=NOW),
    ]
    for spoil in spoils:
        with pytest.raises(DatabaseError), transaction.atomic():
            spoil()
    assert state_of(request) == "valid"


def test_every_refusal_has_a_code_facts_and_a_sentence(desk: Desk) -> None:
    request, mia = desk.request(), desk.approver()
    void(request=request, changes=[CHANGE], now=NOW)
    codes = set()
    for kind in DecisionRefusedError.__subclasses__():
        codes.add(kind.code)
    assert len(codes) == len(DecisionRefusedError.__subclasses__()) and "refused" not in codes
    with pytest.raises(DecisionRefusedError) as refused:
        choose(request, mia)
    assert refused.value.sentence and refused.value.code == "stale"
