"""The end of a request: announced before, recorded after, by whoever comes first, and once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import transaction
from pytest_django import Settings

from accounts.rights import Right, withdraw_right
from approvals.models import Request
from approvals.outcomes import ExpiredError
from runs import actions, agents, recovery
from runs.access import NotPermitted
from runs.clock import database_now
from runs.machine.state import RequestStatus, State
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.test_evidence import kinds

#: Requests of the test profile stand for 5 s; their end is announced a quarter before.
NEARLY, OVER = timedelta(seconds=4), timedelta(seconds=6)


def test_it_is_announced_before_and_recorded_after(house: House, world: World, clock: Clock) -> None:
    run = house.waiting()
    clock.move(NEARLY)
    for _ in range(2):
        assert advance(run).state is State.WAITING_APPROVAL
    assert kinds(run).count("ExpiryAnnounced") == 1

    clock.move(OVER)
    for _ in range(2):
        assert advance(run).requests[-1].status is RequestStatus.EXPIRED

    assert [kind for kind in kinds(run) if "Expir" in kind] == ["ExpiryAnnounced", "ApprovalExpired"]
    assert Request.objects.get().state == "expired"


@pytest.mark.parametrize("how", ["expired", "not allowed"])
def test_an_approval_that_ends_with_nothing_left_to_send_ends_nothing(
    house: House, world: World, clock: Clock, how: str
) -> None:
    run = house.scripted(
        [{"tool": "pay", "order": "1", "amount": "500.00"}, {"signal": "go", "name": "rest"}]
    )
    house.decide(run, house.approver)
    assert advance(run).state is State.WAITING
    if how == "expired":
        clock.move(OVER)
    else:
        with transaction.atomic():
            withdraw_right(
                to=house.approver, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now()
            )
    house.answer(run, "go")

    assert advance(run).state is State.SUCCEEDED
    assert_replays(run)


@pytest.fixture
def nobody_serves(settings: Settings) -> Iterator[None]:
    """No process has the agent's code."""
    settings.HANDOFF_AGENTS = []
    agents.registered.cache_clear()
    yield
    agents.registered.cache_clear()


def test_it_is_recorded_where_no_worker_has_the_code(
    house: House, world: World, clock: Clock, nobody_serves: None, settings: Settings
) -> None:
    settings.HANDOFF_AGENTS = ["tests.outside:PAYER"]
    agents.registered.cache_clear()
    run = house.waiting()
    settings.HANDOFF_AGENTS = []
    agents.registered.cache_clear()
    clock.move(OVER)

    for _ in range(2):
        recovery.sweep()

    assert assert_replays(run).requests[-1].status is RequestStatus.EXPIRED
    assert kinds(run).count("ApprovalExpired") == 1


def test_a_run_that_needs_a_person_meanwhile(house: House, world: World, clock: Clock) -> None:
    """The approval ends while the run stands still, and is asked for anew when it goes on."""
    run = house.approved()
    world.answers = ["refused"]
    assert advance(run).state is State.NEEDS_HUMAN
    clock.move(OVER)

    recovery.sweep()

    state = assert_replays(run)
    assert (state.state, state.requests[-1].status) == (State.NEEDS_HUMAN, RequestStatus.EXPIRED)


def test_an_approval_that_ends_while_the_run_waits_is_asked_for_anew(
    house: House, world: World, clock: Clock
) -> None:
    run = house.scripted([{"timer": 60, "name": "rest"}, {"tool": "pay", "order": "7", "amount": "250.00"}])
    house.decide(run, house.approver)
    assert advance(run).state is State.WAITING

    clock.move(OVER)
    state = advance(run)
    assert (state.state, state.requests[-1].status) == (State.WAITING, RequestStatus.EXPIRED)
    clock.move(timedelta(minutes=1))

    state = advance(run)
    assert (state.state, state.requests[-1].status) == (State.WAITING_APPROVAL, RequestStatus.PENDING)
    assert world.calls == []
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED
    assert world.calls == ["pay:7"]


def test_renewing_does_not_wait_until_the_end_is_recorded(house: House, world: World, clock: Clock) -> None:
    run = house.waiting()
    clock.move(OVER)
    with pytest.raises(ExpiredError):
        house.decide(run, house.approver)

    _renew(house, run)

    assert [r.status.value for r in assert_replays(run).requests] == ["expired", "pending"]
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED


def test_one_who_may_decide_may_ask_anew_and_a_viewer_may_not(house: House, clock: Clock) -> None:
    run = house.waiting()
    clock.move(OVER)
    with pytest.raises(NotPermitted):
        actions.renew_request(person=house.viewer, run_id=run.pk, request=uuid4(), submission=uuid4())
    actions.renew_request(person=house.approver, run_id=run.pk, request=uuid4(), submission=uuid4())
    withdraw_right(
        to=house.approver, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now()
    )
    assert len(assert_replays(run).requests) == 2


def _renew(house: House, run: Run) -> None:
    actions.renew_request(person=house.operator, run_id=run.pk, request=uuid4(), submission=uuid4())
