"""An approval that is taken back: what was sent stands, nothing more is sent, and the plan asks anew."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest

from accounts.models import User
from accounts.rights import Right, withdraw_right
from approvals.models import Decision, Request
from approvals.outcomes import AlreadyRecorded, NotOpenError, ReasonMissingError, Recorded
from runs import actions, engine, recovery
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import EffectStatus, RequestStatus, RunState, State
from runs.machine.transitions import Decision as Choice
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.scripted import Script, pay, plan
from tests.runs.test_evidence import kinds
from tests.runs.test_fencing import _at_once

RACES = 40


def take_back(run: Run, person: User, reason: str = "The supplier is another one.") -> Recorded:
    version = load(run.pk).requests[-1].version
    return actions.take_back_approval(
        person=person, run_id=run.pk, version=version, reason=reason, submission=uuid4()
    )


def asked_anew(state: RunState) -> None:
    """The same plan version waits for a decision again; the request before was taken back."""
    before, now = state.requests[-2:]
    assert (before.status, now.status) == (RequestStatus.TAKEN_BACK, RequestStatus.PENDING)
    assert (before.version, before.digest) == (now.version, now.digest)
    assert state.state is State.WAITING_APPROVAL


def test_before_anything_is_sent(house: House, world: World) -> None:
    run = house.approved()

    take_back(run, house.approver)

    asked_anew(advance(run))
    assert world.calls == []
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:2000") == 1


def test_while_a_step_is_being_sent(house: House, world: World) -> None:
    """The send was first: its receipt is stored as any. The step after it is not sent before a new approval."""
    run = house.approved()

    def meanwhile(when: str) -> None:
        world.hook = None
        take_back(run, house.approver)
        assert load(run.pk).requests[-1].status is RequestStatus.TAKEN_BACK

    world.hook = meanwhile
    state = advance(run)

    asked_anew(state)
    assert state.effects[1].status is EffectStatus.CONFIRMED
    assert world.calls == ["pay:2000"]
    house.decide(run, house.second)
    assert advance(run).state is State.SUCCEEDED
    assert world.calls == ["pay:2000", "tell:2000"]


def test_while_an_effect_is_unknown(house: House, world: World, clock: Clock) -> None:
    run = house.approved()
    world.answers, world.outage = ["lost"], "the bank is closed"
    assert advance(run).state is State.UNKNOWN

    take_back(run, house.approver)
    assert assert_replays(run).state is State.UNKNOWN

    world.outage = ""
    clock.move(timedelta(seconds=3))
    asked_anew(advance(run))
    assert world.calls == ["pay:2000"]


def test_while_a_person_is_needed(house: House, world: World) -> None:
    run = house.approved()
    world.answers = ["refused"]
    assert advance(run).state is State.NEEDS_HUMAN

    take_back(run, house.approver)
    house.choose(run, Choice.RETRY)

    asked_anew(advance(run))
    assert world.calls == ["pay:2000"]


def test_one_of_two_takes_back_and_none_of_two_is_left(house: House, script: Script) -> None:
    script.needed, script.proposals = 2, [plan()]
    run = house.waiting()
    house.decide(run, house.approver)

    take_back(run, house.approver)

    state = assert_replays(run)
    asked_anew(state)
    assert not state.requests[-1].decisions
    house.decide(run, house.second)
    assert assert_replays(run).state is State.WAITING_APPROVAL


def test_one_who_lost_the_right_may_still_take_back(house: House, world: World) -> None:
    run = house.approved()
    withdraw_right(
        to=house.approver, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now()
    )
    take_back(run, house.approver)
    asked_anew(assert_replays(run))


def test_nothing_to_take_back(house: House, world: World) -> None:
    run = house.approved()
    with pytest.raises(NotOpenError):
        take_back(run, house.second)
    with pytest.raises(ReasonMissingError):
        take_back(run, house.approver, "no")
    assert advance(run).state is State.SUCCEEDED
    with pytest.raises(NotOpenError):
        take_back(run, house.approver)
    assert "ApprovalTakenBack" not in kinds(run)


def test_the_same_form_twice_is_once(house: House, world: World) -> None:
    run, submission = house.approved(), uuid4()
    for outcome in (Recorded, AlreadyRecorded):
        told = actions.take_back_approval(
            person=house.approver,
            run_id=run.pk,
            version=1,
            reason="The wrong supplier.",
            submission=submission,
        )
        assert type(told) is outcome
    assert kinds(run).count("ApprovalTakenBack") == 1
    assert Decision.objects.filter(verdict="take_back").count() == 1


def test_it_races_a_send(house: House, script: Script, world: World) -> None:
    """Each time either the send was committed first, or nothing was called."""
    script.needed = 1
    first, ahead = (
        {"sent": 0, "taken back": 0},
        0.0,
    )  # how long the send waits, so that the two come close together
    for number in range(RACES):
        script.proposals = [plan(pay(f"pay:{number}", order=str(number), amount="1.00"))]
        run = house.waiting()
        house.decide(run, house.approver)
        held = recovery.claim(run.pk)
        assert held is not None
        while not (held.state.state is State.EXECUTING and held.validated(held.state)):
            assert engine._step(held)

        def taking(run: Run = run) -> None:
            with suppress(NotOpenError):
                take_back(run, house.approver)

        _at_once(partial(_to_the_end, held, ahead), taking)
        held.__exit__(None, None, None)
        told = kinds(run)
        sent = "EffectIntended" in told
        assert world.times(f"pay:{number}") == sent
        if sent and "ApprovalTakenBack" in told:
            assert told.index("EffectIntended") < told.index("ApprovalTakenBack")
        first["sent" if sent else "taken back"] += 1
        ahead = ahead + 0.004 if sent else max(0.0, ahead - 0.004)
        assert_replays(run)
    assert all(first.values()), f"one side always came first: {first}"
    assert not Request.objects.filter(state="valid").exists()


def _to_the_end(held: recovery.Held, wait: float) -> None:
    time.sleep(wait)
    while engine._step(held):
        pass
