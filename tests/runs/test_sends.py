"""Before anything is sent: what a send rests on is read in its own transaction, and one effect is one effect."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connections, transaction

from accounts.models import Membership, User
from accounts.rights import Right, grant_right, withdraw_right
from approvals.models import Request
from approvals.outcomes import DecisionRefusedError
from runs import actions, agents, engine, facts
from runs.agents import Constraint
from runs.clock import database_now
from runs.ledger import SendRefused, append, load, log
from runs.machine import events as e
from runs.machine.state import EffectStatus, RequestStatus, RunState, State
from runs.machine.transitions import Decision, Refused
from runs.models import Effect, Event, Run
from tests import outside
from tests.accounts.world import in_thread, wait_until, waiting_for_lock
from tests.fixtures.clock import Clock
from tests.machine.samples import SAMPLES
from tests.outside import World
from tests.people import House, advance
from tests.runs.scripted import Script, pay, plan
from tests.runs.test_claims import at_once
from tests.runs.test_evidence import kinds
from tests.runs.test_planning import codes


def withdraw(house: House, person: User) -> None:
    withdraw_right(to=person, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now())


def give_back(house: House, person: User) -> None:
    grant_right(to=person, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now())


WITHDRAWALS: dict[str, Callable[[House], object]] = {
    "the right": lambda h: withdraw(h, h.approver),
    "the membership": lambda h: Membership.objects.filter(user=h.approver).update(active=False),
    "the person": lambda h: User.objects.filter(pk=h.approver.pk).update(is_active=False),
}


@pytest.mark.parametrize("withdrawn", WITHDRAWALS.values(), ids=list(WITHDRAWALS))
@pytest.mark.parametrize("late", [False, True], ids=["before revalidation", "between revalidation and send"])
def test_an_approval_falls_with_what_it_rests_on(
    house: House,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    withdrawn: Callable[[House], object],
    late: bool,
) -> None:
    run = house.approved()
    if late:
        monkeypatch.setattr(engine, "_send", _first(lambda: withdrawn(house), engine._send))
    else:
        withdrawn(house)

    state = advance(run)

    assert world.calls == []
    assert state.state is State.WAITING_APPROVAL
    assert [r.status for r in state.requests] == [RequestStatus.VOIDED, RequestStatus.PENDING]
    assert [c.subject for c in state.requests[0].causes] == ["Approver"]
    house.decide(run, house.second)
    assert advance(run).state is State.SUCCEEDED


def _first(work: Callable[[], object], then: Callable[..., Any]) -> Callable[..., Any]:
    """`then`, with `work` done before its first call."""
    done: list[object] = []

    def both(*arguments: Any) -> Any:
        if not done:
            done.append(work())
        return then(*arguments)

    return both


def test_a_plan_that_falls_with_its_approver_is_made_anew_and_not_asked_for_again(
    house: House, world: World
) -> None:
    run = house.approved()
    withdraw(house, house.approver)
    world.versions["2000"] = "v2"

    state = advance(run)

    assert (state.state, len(state.plans)) == (State.WAITING_APPROVAL, 2)
    assert [c.what for c in state.plans[0].voided][:2] == ["approvers", "resources"]
    house.decide(run, house.second)
    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:2000") == 1


def test_where_nobody_is_left_who_may_approve_a_person_is_needed(house: House, world: World) -> None:
    run = house.approved()
    withdraw(house, house.approver)
    withdraw(house, house.second)

    state = advance(run)

    assert codes(state) == ["authority_lost"]
    assert world.calls == []
    give_back(house, house.second)
    assert house.choose(run, Decision.RESUME).state is State.WAITING_APPROVAL
    actions.renew_request(person=house.operator, run_id=run.pk, request=uuid4(), submission=uuid4())
    house.decide(run, house.second)
    assert advance(run).state is State.SUCCEEDED


def test_a_run_acts_for_nobody_who_left(house: House, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run = house.start()

    def leaves() -> None:
        User.objects.filter(pk=house.operator.pk).update(is_active=False)

    monkeypatch.setattr(engine, "_send", _first(leaves, engine._send))

    state = advance(run)

    assert codes(state) == ["authority_lost"]
    assert world.calls == []
    User.objects.filter(pk=house.operator.pk).update(is_active=True)
    house.choose(run, Decision.RESUME)
    assert codes(advance(run)) == ["authority_lost"], "what was given back is a new permission"
    house.lend(run)
    assert advance(run).state is State.WAITING_APPROVAL
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED


def test_a_withdrawal_waits_for_the_send_under_way(house: House, world: World) -> None:
    run = house.approved()
    state, done = load(run.pk), list[int]()

    def withdrawing() -> None:
        withdraw(house, house.approver)
        done.append(1)

    with transaction.atomic():
        _append_guarded(state, run)
        thread = in_thread(withdrawing)
        wait_until(waiting_for_lock)
        assert done == []
    thread.join(10)
    assert done == [1]
    assert _length(run) == state.seq + 1


def test_a_send_that_waited_for_a_withdrawal_is_refused(house: House, world: World) -> None:
    run = house.approved()
    state, refused = load(run.pk), list[str]()

    def sending() -> None:
        try:
            _append_guarded(state, run)
        except SendRefused as error:
            refused.append(error.check)

    with transaction.atomic():
        withdraw(house, house.approver)
        thread = in_thread(sending)
        wait_until(waiting_for_lock)
        assert refused == []
    thread.join(10)
    assert refused == ["approvers"]
    assert _length(run) == state.seq


def _append_guarded(state: RunState, run: Run) -> RunState:
    """An append with exactly what a send must find in its own transaction; its event moves nothing."""
    guard = facts.guard_of(state, run, "bank", "pay:2000")
    actor = e.Actor(e.ActorKind.WORKER, "w", "w")
    return append(state, [SAMPLES[e.EvidenceKept]], actor=actor, now=database_now(), guard=guard)


def _length(run: Run) -> int:
    return Event.objects.filter(run=run).count()


def test_an_approval_that_ended_unused_is_renewed(house: House, world: World, clock: Clock) -> None:
    run = house.approved()
    clock.move(timedelta(seconds=6))

    state = advance(run)

    assert (state.state, state.requests[-1].status) == (State.WAITING_APPROVAL, RequestStatus.EXPIRED)
    assert world.calls == []
    assert advance(run).seq == state.seq
    actions.renew_request(person=house.operator, run_id=run.pk, request=uuid4(), submission=uuid4())
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED


def test_a_request_that_nobody_answered_expires(house: House, world: World, clock: Clock) -> None:
    run = house.waiting()
    clock.move(timedelta(seconds=6))

    state = advance(run)

    assert state.requests[-1].status is RequestStatus.EXPIRED
    assert Request.objects.get(subject=f"{run.pk}:1").state == "expired"


def test_an_approval_that_ends_between_two_effects_stops_the_second(
    house: House, world: World, clock: Clock
) -> None:
    def hook(when: str) -> None:
        if when == "after" and len(world.executed) == 1:
            clock.move(timedelta(seconds=6))

    world.hook = hook
    run = house.approved()

    state = advance(run)

    assert world.calls == ["pay:2000"]
    assert state.requests[-1].status is RequestStatus.EXPIRED
    world.hook = None
    actions.renew_request(person=house.operator, run_id=run.pk, request=uuid4(), submission=uuid4())
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED
    assert world.calls == ["pay:2000", "tell:2000"]


def test_a_deadline_that_passes_between_two_effects_stops_the_second(
    house: House, world: World, clock: Clock
) -> None:
    def hook(when: str) -> None:
        if when == "after" and len(world.executed) == 1:
            clock.move(timedelta(minutes=5))

    world.hook = hook
    run = actions.start_run(
        agent=house.agent, version="1", goal="Pay", input={"order": "7", "amount": "50.00"}, start_key="deadline",
        creator=house.operator, principal=house.operator, deadline=database_now() + timedelta(minutes=1),
    )  # fmt: skip

    state = advance(run)

    assert codes(state) == ["deadline_passed"]
    assert world.calls == ["pay:7"]


def test_two_people_are_two_people(house: House, script: Script, world: World) -> None:
    script.needed = 2
    run = house.waiting()
    house.decide(run, house.approver)
    state = advance(run)
    assert state.state is State.WAITING_APPROVAL
    house.decide(run, house.approver)  # the same person once more is no second one
    assert advance(run).state is State.WAITING_APPROVAL
    assert world.calls == []

    house.decide(run, house.second)

    assert advance(run).state is State.SUCCEEDED


def test_of_two_needed_one_who_lost_the_right_voids_it(house: House, script: Script, world: World) -> None:
    script.needed = 2
    run = house.waiting()
    house.decide(run, house.approver)
    house.decide(run, house.second)
    assert load(run.pk).requests[0].status is RequestStatus.VALID
    withdraw(house, house.approver)

    state = advance(run)

    assert world.calls == []
    assert state.requests[0].status is RequestStatus.VOIDED


def test_who_started_the_run_may_not_approve_it_where_the_policy_says_so(
    house: House, script: Script, world: World
) -> None:
    script.needed = 1
    grant_right(to=house.operator, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now())
    run = house.waiting()

    with pytest.raises(DecisionRefusedError):
        house.decide(run, house.operator)

    assert advance(run).state is State.WAITING_APPROVAL


def test_two_runs_about_one_operation_send_once(house: House, world: World) -> None:
    first, second = house.start(), house.start()
    advance(first)

    state = advance(second)

    assert world.calls == ["pay:1042", "tell:1042"]
    assert codes(state) == ["effect_conflict"]
    assert first.pk in state.reasons[0].evidence
    assert state.effects == {}


def test_a_held_operation_is_tried_again_when_a_person_says_so_and_still_not_sent_twice(
    house: House, world: World
) -> None:
    first, second = house.start(), house.start()
    advance(first)
    advance(second)

    actions.decide_run(
        person=house.operator, run_id=second.pk, decision=Decision.RESUME, note="", submission=uuid4()
    )
    state = advance(second)

    assert codes(state) == ["effect_conflict"]
    assert world.times("pay:1042") == 1


@pytest.mark.parametrize("status", [EffectStatus.IN_FLIGHT, EffectStatus.UNKNOWN])
def test_an_operation_that_is_open_elsewhere_is_not_sent(
    house: House, world: World, status: EffectStatus
) -> None:
    first, second = house.start(), house.start()
    found: list[RunState] = []

    def hook(when: str) -> None:
        if when == "before" and status is EffectStatus.IN_FLIGHT:
            world.hook = None
            found.append(_in_another_process(second))

    world.hook = hook
    if status is EffectStatus.UNKNOWN:
        world.answers, world.outage = ["lost"], "503"
    advance(first)
    if status is EffectStatus.UNKNOWN:
        assert Effect.objects.get(run=first).status == status
        found.append(advance(second))

    assert codes(found[0]) == ["effect_conflict"]
    assert world.times("pay:1042") == 1


def _in_another_process(run: Run) -> RunState:
    """Another worker moves the run meanwhile, on a connection of its own."""
    got: list[RunState] = []

    def move() -> None:
        try:
            engine.advance(run.pk)
            got.append(load(run.pk))
        finally:
            connections.close_all()

    thread = threading.Thread(target=move)
    thread.start()
    thread.join(30)
    return got[0]


def test_eight_runs_about_one_operation_at_once_send_once(house: House, world: World) -> None:
    runs = [house.start() for _ in range(8)]
    left, lock = list(runs), threading.Lock()

    def move() -> int:
        with lock:
            run = left.pop()
        return engine.advance(run.pk)

    at_once(move)

    assert world.times("pay:1042") == 1
    states = sorted(load(run.pk).state for run in runs)
    assert states == [State.NEEDS_HUMAN] * 7 + [State.SUCCEEDED]


def test_the_same_call_proposed_anew_is_answered_from_the_receipt(
    house: House, script: Script, world: World
) -> None:
    """A model that comes back with the same charge under another name pays once."""
    script.proposals = [
        plan(pay("first"), pay("boom", order="8")),
        plan(pay("renamed"), pay("boom2", order="9")),
    ]
    world.answers = ["", "refused"]
    run = house.start()
    assert codes(advance(run)) == ["tool_failed"]

    house.choose(run, Decision.REPLAN)
    state = advance(run)

    assert state.state is State.SUCCEEDED
    assert world.calls == ["pay:7", "pay:8", "pay:9"]
    assert "EffectAnswered" in kinds(run)


def test_a_refused_effect_is_done_again_under_a_new_key_and_id(house: House, world: World) -> None:
    world.answers = ["refused"]
    run = house.start()
    state = advance(run)
    first = state.effects[1]

    house.choose(run, Decision.RETRY)
    state = advance(run)

    assert state.state is State.SUCCEEDED
    second = state.effects[2]
    assert (first.operation_id, second.operation_id) == ("pay:1042", "pay:1042#1")
    assert first.key != second.key
    assert world.calls == ["pay:1042", "pay:1042#1", "tell:1042"]
    assert world.times("pay:1042#1") == 1


def test_a_refused_effect_can_be_planned_with_another_amount(
    house: House, script: Script, world: World
) -> None:
    world.answers = ["refused"]
    script.proposals = [plan(pay(amount="50.00")), plan(pay(amount="40.00"))]
    run = house.start()
    advance(run)
    house.choose(run, Decision.REPLAN, "less")
    assert codes(advance(run)) == ["tool_failed"]

    house.choose(run, Decision.RETRY)

    assert advance(run).state is State.SUCCEEDED
    assert [(i, a["amount"]) for i, _, a in world.executed] == [("pay:7#1", "40.00")]


def test_what_a_person_writes_reaches_the_planner(house: House, script: Script, world: World) -> None:
    world.answers = ["refused"]
    run = house.start()
    advance(run)
    house.choose(run, Decision.REPLAN, "take the other account")
    advance(run)
    assert script.views[-1].advice == ("take the other account",)


def test_a_decision_that_the_reasons_do_not_allow_is_refused(house: House, world: World) -> None:
    world.answers = ["refused"]
    run = house.start()
    before = advance(run)
    with pytest.raises(Refused):
        house.choose(run, Decision.RESUME)
    assert load(run.pk) == before


def test_one_form_decides_once(house: House, world: World) -> None:
    world.answers = ["refused"]
    run = house.start()
    advance(run)
    submission = uuid4()
    for _ in range(2):
        done = actions.decide_run(
            person=house.operator, run_id=run.pk, decision=Decision.RETRY, note="", submission=submission
        )
    assert done.repeated
    assert kinds(run).count("RunResumed") == 1
    with pytest.raises(Refused):
        actions.cancel_run(person=house.operator, run_id=run.pk, note="", submission=submission)


def test_a_constraint_that_was_withdrawn_at_its_source_stops_the_run(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.approved()
    _state_other_constraints(monkeypatch)

    state = advance(run)

    assert codes(state) == ["constraint_withdrawn"]
    assert world.calls == []


def test_a_constraint_of_another_version_is_not_the_accepted_one(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.approved()
    amended = Constraint(
        text="Pay only open orders.", source_kind="configuration", source_ref="payer", source_version="2"
    )
    _state_other_constraints(monkeypatch, amended)

    state = advance(run)

    assert state.state is State.NEEDS_HUMAN
    assert world.calls == []


def _state_other_constraints(monkeypatch: pytest.MonkeyPatch, *constraints: Constraint) -> None:
    """The agent's configuration says something else from now on."""
    monkeypatch.setattr(outside, "PAYER", replace(outside.PAYER, constraints=constraints))
    agents.registered.cache_clear()


def test_the_log_of_a_send_says_who_sent(house: House, world: World) -> None:
    run = house.start()
    advance(run)
    sent = [x for x in log(run.pk) if isinstance(x.event, e.EffectIntended)]
    assert all(x.actor.kind is e.ActorKind.WORKER for x in sent)
    assert len(sent) == 2
