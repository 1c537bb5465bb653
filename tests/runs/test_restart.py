"""A run without a valid continuation: one successor, which repeats nothing that stands."""

from __future__ import annotations

import threading
from uuid import UUID, uuid4

import pytest
from django.db import connection

from approvals.models import Verdict
from runs import actions
from runs.ledger import load
from runs.machine.state import RequestStatus, State
from runs.machine.transitions import Refused
from runs.models import Run
from tests.outside import World
from tests.people import House, advance, assert_replays


def restart(house: House, run: Run, submission: UUID | None = None) -> Run:
    done = actions.restart_run(
        person=house.operator, run_id=run.pk, note="it cannot go on", submission=submission or uuid4()
    )
    assert_replays(run)
    return Run.objects.get(pk=done.run)


@pytest.fixture
def half_done(house: House, world: World) -> Run:
    """Paid, and then the mail was refused: the promise to tell the supplier is open."""
    world.answers = ["", "refused"]
    run = house.start()
    assert [r.code for r in advance(run).reasons] == ["tool_failed"]
    return run


def test_the_successor_repeats_nothing_that_stands(house: House, world: World, half_done: Run) -> None:
    successor = restart(house, half_done)

    state = advance(successor)

    assert state.state is State.SUCCEEDED
    assert world.times("pay:1042") == 1
    assert world.times("tell:1042") == 1
    assert load(half_done.pk).state is State.RESTARTED


def test_the_successor_takes_over_what_is_owed(house: House, half_done: Run) -> None:
    successor = restart(house, half_done)

    assert [o.text for o in load(successor.pk).open_obligations] == ["tell the supplier of 1042"]
    assert [o.open for o in advance(successor).obligations] == [False]


def test_no_approval_is_taken_over(house: House, world: World) -> None:
    run = house.approved()
    world.answers = ["refused"]
    advance(run)

    state = advance(restart(house, run))

    assert state.state is State.WAITING_APPROVAL
    assert state.request is not None
    assert state.request.status is RequestStatus.PENDING
    assert load(run.pk).requests[-1].status is RequestStatus.VOIDED


def test_another_amount_under_the_same_operation_stops_and_shows_both(house: House, world: World) -> None:
    run = house.start(order="7", amount="50.00")
    world.answers = ["", "refused"]
    advance(run)
    successor = restart(house, run)
    # The successor has the old one's input; a planner may still come to another amount.
    world.amounts["7"] = "60.00"

    state = advance(successor)

    assert [r.code for r in state.reasons] == ["effect_conflict"]
    assert "50.00" in state.reasons[0].evidence
    assert "60.00" in state.reasons[0].evidence
    assert world.times("pay:7") == 1


def test_the_same_form_twice_makes_one_successor(house: House, half_done: Run) -> None:
    submission = uuid4()

    assert restart(house, half_done, submission) == restart(house, half_done, submission)
    assert Run.objects.filter(predecessor=half_done).count() == 1


def test_two_at_once_make_one_successor(house: House, half_done: Run) -> None:
    outcomes: list[object] = []
    barrier = threading.Barrier(2)

    def click() -> None:
        barrier.wait()
        try:
            outcomes.append(restart(house, half_done).pk)
        except Refused as refused:
            outcomes.append(refused.state)
        finally:
            connection.close()

    threads = [threading.Thread(target=click) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert State.RESTARTED in outcomes
    assert Run.objects.filter(predecessor=half_done).count() == 1


def test_nothing_is_restarted_while_an_effect_is_unknown(house: House, world: World) -> None:
    world.answers = ["lost"]
    run = house.start(tool="pay_blind")
    advance(run)

    with pytest.raises(Refused):
        restart(house, run)
    assert not Run.objects.filter(predecessor=run).exists()


def test_a_rejected_plan_can_be_started_anew(house: House) -> None:
    run = house.waiting()
    house.decide(run, house.approver, Verdict.REJECT, "the wrong supplier")
    advance(run)

    assert advance(restart(house, run)).state is State.WAITING_APPROVAL
