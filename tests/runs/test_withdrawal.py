"""Constraints held here end or change by people's actions: exact impact first, one row, then every run is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from django.db import connections

from accounts.models import User
from accounts.rights import Right, grant_right
from approvals.models import Request, RequestState
from approvals.outcomes import SeparationOfDutiesError
from runs import actions, constrained
from runs.clock import database_now
from runs.ledger import load
from runs.machine import state as s
from runs.machine.constraints import term_digest
from runs.machine.decide import AmendmentMoved, goal_impact
from runs.machine.state import State
from runs.machine.transitions import Refused
from runs.models import PlanVersion, Run, Statement, Told
from runs.sources import held
from tests.fixtures.database import LiveDatabase
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.test_evidence import kinds
from tests.runs.test_fencing import RACES, _answered, _append, _send, _sends, long_plan  # noqa: F401
from tests.runs.test_planning import codes
from tests.runs.test_policies import hold
from tests.runs.test_statements import say, texts
from tests.runs.test_statements import withdraw as withdrawn_row

WHY = "finance has confirmed it"


@pytest.fixture
def revoker(house: House) -> User:
    for right in (Right.MANAGE_POLICIES, Right.REVOKE_CONSTRAINTS):
        grant_right(to=house.viewer, right=right, obj=house.agent, actor=None, now=database_now())
    return house.viewer


def add(house: House, by: User, text: str = "Pay by day.", **more: Any) -> Statement:
    fields: dict[str, Any] = {
        "name": "hours",
        "predicate": "",
        "reason": "as was agreed",
        "place": house.agent,
    } | more
    made = actions.add_constraint(person=by, text=text, submission=uuid4(), **fields)
    return latest(house, made.ref)


def latest(house: House, ref: str) -> Statement:
    return held.latest(tenant_id=house.tenant.pk).get(ref=ref)


def told_of(house: House, ref: str) -> constrained.Progress:
    row = latest(house, ref)
    return constrained.progress([row])[row.pk]


def impact(statement: Statement) -> constrained.Impact:
    return constrained.impact(tenant_id=statement.tenant_id, ref=statement.ref)


def revoke(by: User, statement: Statement, **more: Any) -> actions.Stated:
    fields: dict[str, Any] = {"reason": WHY, "seen": impact(statement).digest, "submission": uuid4()} | more
    return actions.withdraw_constraint(person=by, latest=statement, **fields)


def amend(by: User, statement: Statement, text: str = "Pay by night.", **more: Any) -> actions.Stated:
    seen = impact(statement).digest
    fields: dict[str, Any] = {"reason": WHY, "seen": seen, "submission": uuid4(), "predicate": ""} | more
    return actions.amend_constraint(person=by, latest=statement, text=text, **fields)


def test_the_impact_is_exactly_what_loses_its_validity(house: House, world: World, revoker: User) -> None:
    held_one = add(house, revoker)
    planning, waiting, approved = house.start("1"), house.waiting("2"), house.approved("3")
    over = house.start("4")
    assert advance(over).state is State.SUCCEEDED
    before = impact(held_one)
    assert (before.runs, before.plans, before.pending, before.valid) == (3, 2, 1, 1)
    listed = constrained.rests(tenant_id=house.tenant.pk, ref=held_one.ref, most=50)
    assert {(x.run, x.plan, x.request) for x in listed} == {
        (planning.pk, None, None), (waiting.pk, 1, "pending"), (approved.pk, 1, "valid"),
    }  # fmt: skip

    revoke(revoker, held_one)
    assert told_of(house, held_one.ref) == constrained.Progress(told=0, runs=3)
    assert actions.mark_constraints(10) == 3

    for run in (planning, waiting, approved):
        assert codes(load(run.pk)) == ["constraint_withdrawn"]
        assert_replays(run)
    assert PlanVersion.objects.filter(voided_seq__isnull=False).count() == before.plans
    assert Request.objects.filter(state=RequestState.VOIDED).count() == before.approvals
    assert told_of(house, held_one.ref) == constrained.Progress(told=3, runs=3)
    assert impact(held_one).runs == 0
    assert load(over.pk).state is State.SUCCEEDED
    assert world.calls == ["pay:4", "tell:4"]


def test_runs_are_told_a_batch_at_a_time_and_once(
    house: House, world: World, revoker: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.actions.marking.BATCH", 2)
    held_one = add(house, revoker)
    runs = [house.start(str(n)) for n in range(5)]
    revoke(revoker, held_one)
    assert [actions.mark_constraints(3) for _ in range(4)] == [3, 2, 0, 0]
    assert Told.objects.count() == 1
    assert all(kinds(run).count("ConstraintWithdrawn") == 1 for run in runs)


def test_marking_that_was_killed_goes_on_where_it_was(
    live_db: LiveDatabase, house: House, world: World, revoker: User
) -> None:
    """SIGKILL after the second batch: what is left is read from the rows, and nobody is told twice."""
    held_one = add(house, revoker)
    runs = [house.start(str(n)) for n in range(6)]
    revoke(revoker, held_one)
    script = (
        "import os, signal, django; django.setup()\n"
        "from runs.actions import marking\n"
        "marking.BATCH, real, done = 2, marking._told, []\n"
        "def told(*given):\n"
        "    found = real(*given); done.append(found)\n"
        "    if len(done) == 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return found\n"
        "marking._told = told; marking.mark_constraints(100)\n"
    )
    environment = {**os.environ, "DATABASE_URL": live_db.url, "HANDOFF_AGENTS": "tests.outside:PAYER"}
    died = subprocess.run([sys.executable, "-c", script], env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    assert told_of(house, held_one.ref) == constrained.Progress(told=4, runs=6)
    assert actions.mark_constraints(100) == 2
    assert all(kinds(run).count("ConstraintWithdrawn") == 1 for run in runs)


def test_what_would_end_has_to_be_what_the_person_saw(house: House, revoker: User) -> None:
    held_one = add(house, revoker)
    seen = impact(held_one).digest
    house.start()
    for act in (revoke, amend):
        with pytest.raises(actions.ConstraintMoved) as refused:
            act(revoker, held_one, seen=seen)
        assert refused.value.impact.runs == 1
    amend(revoker, held_one)
    with pytest.raises(actions.ConstraintMoved):
        revoke(revoker, held_one)
    submission, current = uuid4(), latest(house, held_one.ref)
    first = revoke(revoker, current, submission=submission)
    again = revoke(revoker, current, submission=submission)
    assert (first.version, again.version, again.repeated) == (3, 3, True)
    with pytest.raises(actions.ConstraintMoved):
        revoke(revoker, latest(house, held_one.ref))


def test_each_scope_takes_the_right_at_its_place(house: House, revoker: User) -> None:
    with pytest.raises(actions.ConstraintNotManaged):
        add(house, revoker, place=house.tenant)
    with pytest.raises(actions.ConstraintNotManaged):
        add(house, house.operator)
    mine = add(house, revoker)
    with pytest.raises(actions.ConstraintNotManaged):
        revoke(house.operator, mine)
    grant_right(to=revoker, right=Right.MANAGE_POLICIES, obj=house.tenant, actor=None, now=database_now())
    everybodys = add(house, revoker, place=house.tenant)
    with pytest.raises(actions.ConstraintNotManaged):
        amend(revoker, everybodys)
    assert (mine.kind, everybodys.kind, everybodys.agent) == ("policy", "tenant", None)


@pytest.mark.parametrize(
    ("field", "typed"),
    [("text", " "), ("name", ""), ("name", "n" * 101), ("reason", "short"), ("predicate", "cost <")],
)
def test_words_that_say_too_little_or_cannot_be_read_are_refused(
    house: House, revoker: User, field: str, typed: str
) -> None:
    with pytest.raises(actions.ConstraintRefused) as refused:
        add(house, revoker, **{field: typed})
    assert refused.value.field == field
    assert not Statement.objects.exists()


def test_an_amendment_is_accepted_for_the_run_and_another_plan_follows(
    house: House, world: World, revoker: User
) -> None:
    held_one = add(house, revoker)
    run = house.approved()
    amend(revoker, held_one)
    actions.mark_constraints(10)
    state = load(run.pk)
    assert codes(state) == ["constraint_amended"]
    told = state.constraints[-1].amended
    assert told and told.term.text == "Pay by night."
    with pytest.raises(AmendmentMoved):
        _accept(house, run, term_digest(state.constraints[-1].term))

    _accept(house, run, term_digest(told.term))

    assert texts(run) == ["Pay by night."]
    state = advance(run)
    assert (state.state, len(state.plans)) == (State.WAITING_APPROVAL, 2)
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED


def _accept(house: House, run: Run, seen: str) -> None:
    actions.accept_amendment(
        person=house.operator, run_id=run.pk, number=2, seen=seen, reason=WHY, submission=uuid4()
    )
    assert_replays(run)


def test_one_withdrawn_for_a_run_alone_stands_for_all_others(
    house: House, world: World, revoker: User
) -> None:
    held_one = add(house, revoker)
    run, other = house.approved("1"), house.approved("2")
    actions.withdraw_here(
        person=revoker, run_id=run.pk, number=2, reason=WHY, seen=goal_impact(load(run.pk)).digest, submission=uuid4()
    )  # fmt: skip
    assert codes(assert_replays(run)) == ["constraint_withdrawn"]
    assert latest(house, held_one.ref).version == 1
    assert advance(other).state is State.SUCCEEDED
    with pytest.raises(Refused):
        actions.withdraw_here(
            person=revoker, run_id=run.pk, number=2, reason=WHY, seen=goal_impact(load(run.pk)).digest,
            submission=uuid4(),
        )  # fmt: skip

    first = actions.restart_run(person=house.operator, run_id=run.pk, note="", submission=uuid4()).run
    house.cancel(Run.objects.get(pk=first))
    assert texts(Run.objects.get(pk=first)) == []
    assert texts(house.start("3")) == ["Pay by day."]


def test_who_took_a_limit_away_approves_no_plan_where_the_policy_says_so(
    house: House, world: World, revoker: User
) -> None:
    grant_right(to=revoker, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now())
    hold(house, {"when": "true", "not_by": ["constraint_revoker"]})
    held_one = add(house, revoker)
    before = house.waiting("1")
    revoke(revoker, held_one)
    after = house.waiting("2")

    assert load(before.pk).requests[0].excluded == {}
    assert load(after.pk).requests[0].excluded == {str(revoker.pk): "constraint_revoker"}
    with pytest.raises(SeparationOfDutiesError):
        house.decide(after, revoker)
    house.decide(after, house.approver)
    assert advance(after).state is State.SUCCEEDED


def test_a_withdrawal_racing_a_send_five_hundred_times(
    house: House,
    long_plan: Run,  # noqa: F811
    world: World,
) -> None:
    """Each time either the send was committed before the withdrawal, or nothing was sent after its commit."""
    refs, seen = [f"held/{n}" for n in range(RACES)], list[int]()
    accepted = [
        s.Constraint(number=1, term=held.term_of(say(house, ref=ref)), seq=1, at=database_now())
        for ref in refs
    ]
    gate = threading.Barrier(2, timeout=60)

    def withdrawing() -> None:
        try:
            for ref in refs:
                gate.wait()
                withdrawn_row(house, ref=ref)
                seen.append(_sends(long_plan))
                gate.wait()
        except BaseException:
            gate.abort()
            raise
        finally:
            connections.close_all()

    thread = threading.Thread(target=withdrawing)
    thread.start()
    state, won, sent = load(long_plan.pk), 0, list[int]()
    own = state.constraints
    for constraint in accepted:
        under = msgspec.structs.replace(state, constraints=(constraint,))
        gate.wait()
        tried = _send(under, long_plan, "constraint")
        gate.wait()
        sent.append(_sends(long_plan))
        if tried.seq > state.seq:
            won += 1
            state = _append(msgspec.structs.replace(tried, constraints=own), [*_answered(tried)])
    thread.join(60)

    assert sent == seen
    assert 0 < won < RACES, f"one side always came first: {won}"
    assert len(assert_replays(long_plan).effects) == won
