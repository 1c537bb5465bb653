"""Moving runs to another version: they go on with its code, approvals end where they must, nothing is sent twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from pytest_django import Settings

from accounts.rights import Right, withdraw_right
from approvals.models import Request
from runs import actions, agents, engine, recovery
from runs.access import NotPermitted, RunNotFound
from runs.agents import queue_name
from runs.clock import database_now
from runs.ledger import LeaseLost, load
from runs.machine import decide
from runs.machine.state import EffectStatus, RequestStatus, RunState, State
from runs.machine.transitions import Decision, Refused
from runs.models import Claim, Event, Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.test_evidence import kinds
from tests.runs.test_planning import codes

NOTE = "version 1 is switched off"


@pytest.fixture
def serve(settings: Settings) -> Iterator[Any]:
    """Have other versions of the payer in this process, by their names in tests.heirs; PAYER is the old one."""

    def with_versions(*names: str) -> None:
        modules = {"PAYER": "tests.outside"}
        settings.HANDOFF_AGENTS = [f"{modules.get(name, 'tests.heirs')}:{name}" for name in names]
        agents.registered.cache_clear()

    yield with_versions
    with_versions("PAYER")


def unserved(run: Run) -> RunState:
    """What the sweep does after the grace."""
    actions.stop_unserved(run_id=run.pk, version=Run.objects.get(pk=run.pk).agent_version)
    return assert_replays(run)


def move(house: House, run: Run, version: str = "2", submission: UUID | None = None) -> RunState:
    actions.move_run(
        person=house.operator, run_id=run.pk, version=version, note=NOTE, submission=submission or uuid4()
    )
    return assert_replays(run)


def test_a_run_that_nobody_serves_goes_on_with_another_version(
    house: House, world: World, serve: Any
) -> None:
    run = house.start()
    serve("SAME")
    assert engine.advance(run.pk) == 0
    Run.objects.filter(pk=run.pk).update(lease_until=None)
    assert codes(unserved(run)) == ["version_unavailable"]

    state = move(house, run)

    row = Run.objects.get(pk=run.pk)
    assert (state.state, row.agent_version, row.lease_until) == (State.PLANNING, "2", None)
    event = load_event(run, "VersionMoved")
    assert (event.actor_name, event.actor_kind) == ("Operator", "person")
    assert state.identity.code["prompt"] == "p-2"
    assert advance(run).state is State.SUCCEEDED
    assert (world.times("pay:1042"), world.times("tell:1042")) == (1, 1)


def load_event(run: Run, kind: str) -> Event:
    return Event.objects.get(run=run, type=kind)


def test_what_was_approved_stands_with_the_same_tools_and_policy(
    house: House, world: World, serve: Any
) -> None:
    run = house.approved()
    unserved(run)
    serve("SAME")

    assert move(house, run).state is State.APPROVED
    state = advance(run)

    assert (state.state, len(state.plans), world.times("pay:2000")) == (State.SUCCEEDED, 1, 1)


@pytest.mark.parametrize(
    ("name", "version", "part"), [("CHANGED", "3", "tool:pay"), ("OTHER_POLICY", "4", "policy")]
)
def test_an_approval_ends_with_other_tools_or_another_policy(
    house: House, world: World, serve: Any, name: str, version: str, part: str
) -> None:
    run = house.approved()
    unserved(run)
    serve(name)

    state = move(house, run, version)
    assert state.state is State.PLANNING
    row = Request.objects.get(subject__startswith=run.pk)
    assert row.state == RequestStatus.VOIDED.value
    assert state.request is not None
    assert [(c.what, c.subject) for c in state.request.causes] == [("code", part)]

    state = advance(run)
    assert (state.state, len(state.plans), world.calls) == (State.WAITING_APPROVAL, 2, [])
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:2000") == 1


def test_a_request_that_waits_ends_too_and_stays_where_nothing_it_rests_on_changed(
    house: House, world: World, serve: Any
) -> None:
    kept, ended = house.waiting("1", "250.00"), house.waiting("2", "250.00")
    serve("SAME", "CHANGED")

    assert move(house, kept).state is State.WAITING_APPROVAL
    house.decide(kept, house.approver)
    assert advance(kept).state is State.SUCCEEDED
    assert move(house, ended, "3").state is State.PLANNING
    assert not Request.objects.filter(subject__startswith=ended.pk, state="pending").exists()


def test_what_stands_is_answered_from_its_receipt_by_the_new_plan(
    house: House, world: World, serve: Any
) -> None:
    world.answers = ["", "refused"]
    run = house.start()
    state = advance(run)
    assert codes(state) == ["tool_failed"]
    assert state.effects[1].status is EffectStatus.CONFIRMED
    serve("CHANGED")

    state = move(house, run, "3")
    assert (state.state, codes(state), state.before) == (State.NEEDS_HUMAN, ["tool_failed"], State.PLANNING)
    house.choose(run, Decision.REPLAN)
    state = advance(run)

    assert codes(state) == ["tool_failed"]
    assert "EffectAnswered" in kinds(run)
    house.choose(run, Decision.RETRY)
    assert advance(run).state is State.SUCCEEDED
    assert (world.times("pay:1042"), world.times("tell:1042"), world.times("tell:1042#1")) == (1, 0, 1)


def test_the_same_version_with_other_code_stops_and_may_be_taken_as_it_is(
    house: House, world: World, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    approved, planning = house.approved(), house.start("7")
    monkeypatch.setattr("tests.outside.Pay.patience", timedelta(days=2))

    state = advance(approved)
    stopped = advance(planning)
    assert codes(state) == codes(stopped) == ["version_unavailable"]
    assert (stopped.plan, stopped.observations) == (None, {})  # other code plans nothing for it
    assert state.reasons[0].subject == "tool:pay"
    assert " -> sha256:" in state.reasons[0].evidence
    house.choose(approved, Decision.RESUME)
    assert codes(advance(approved)) == ["version_unavailable"]

    for run in (approved, planning):
        assert move(house, run, "1").state is State.PLANNING
    assert advance(planning).state is State.SUCCEEDED
    assert advance(approved).state is State.WAITING_APPROVAL
    assert world.times("pay:2000") == 0


@pytest.mark.parametrize(
    ("name", "version", "code"),
    [
        ("STRANGER", "5", "not_taken_over"),
        ("OTHER_IDS", "6", "operation_id"),
        ("STRANGER", "77", "version_missing"),
    ],
)
def test_what_cannot_take_it_over_is_refused_with_why_and_nothing_changes(
    house: House, world: World, serve: Any, name: str, version: str, code: str
) -> None:
    run = house.approved()
    before = unserved(run)
    serve(name)
    with pytest.raises(actions.MoveRefused) as refused:
        move(house, run, version)
    assert [found.code for found in refused.value.obstacles] == [code]
    assert (load(run.pk), Run.objects.get(pk=run.pk).agent_version) == (before, "1")


def test_an_effect_in_doubt_is_settled_first(house: House, world: World, serve: Any) -> None:
    world.answers, world.outage = ["lost"], "the bank is closed"
    run = house.start()
    assert advance(run).state is State.UNKNOWN
    unserved(run)
    serve("SAME")
    with pytest.raises(actions.MoveRefused) as refused:
        move(house, run)
    assert [found.code for found in refused.value.obstacles] == ["open_effects"]


def test_only_those_who_operate_the_run_move_it(house: House, world: World, serve: Any) -> None:
    run = house.waiting()
    serve("SAME")
    for person, error in (
        (house.viewer, NotPermitted),
        (house.approver, NotPermitted),
        (house.stranger, RunNotFound),
    ):
        with pytest.raises(error):
            actions.move_run(person=person, run_id=run.pk, version="2", note=NOTE, submission=uuid4())
    withdraw_right(
        to=house.operator, right=Right.OPERATE_RUNS, obj=house.agent, actor=None, now=database_now()
    )
    with pytest.raises(NotPermitted):
        move(house, run)
    assert "VersionMoved" not in kinds(run)


def test_the_same_form_sent_twice_moves_once(house: House, world: World, serve: Any) -> None:
    run, form = house.waiting(), uuid4()
    serve("SAME", "CHANGED")
    first = move(house, run, submission=form)
    assert move(house, run, submission=form) == first
    assert kinds(run).count("VersionMoved") == 1


def test_whoever_still_holds_it_with_the_old_code_lets_go(house: House, world: World, serve: Any) -> None:
    run = house.waiting()
    serve("PAYER", "SAME")
    Run.objects.filter(pk=run.pk).update(wake_at=database_now())
    held = recovery.claim(run.pk)
    assert held is not None

    move(house, run)

    with pytest.raises(LeaseLost):
        held.decide(lambda state, now: decide.human("no_progress"))
    assert recovery.claim(run.pk) is None  # it waits for approval still
    house.decide(run, house.approver)
    again = recovery.claim(run.pk)
    assert again is not None and again.agent.version == "2"
    assert again.token == Claim.objects.filter(run=run).latest("token").token == held.token + 2
    with again:
        pass


def test_a_sweep_that_looked_before_the_move_stops_nothing(house: House, world: World, serve: Any) -> None:
    run = house.approved()
    unserved(run)
    serve("SAME")
    move(house, run)
    actions.stop_unserved(run_id=run.pk, version="1")
    assert load(run.pk).state is State.APPROVED


def test_the_sweep_wakes_it_for_its_new_version(
    house: House, world: World, serve: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.start()
    unserved(run)
    serve("SAME")
    woken: list[str] = []
    monkeypatch.setattr(
        "runs.outbox.current_app.send_task", lambda *_args, queue, **_more: woken.append(queue)
    )
    move(house, run)
    recovery.announce("worker@new")
    recovery.sweep()
    assert woken == [queue_name("payer", "2")] * 2


def test_many_are_moved_each_by_its_own_event_and_the_others_stay(
    house: House, world: World, serve: Any
) -> None:
    fine, waits, busy = house.start("1"), house.waiting("2"), house.start("3")
    unserved(fine)
    serve("SAME")
    form = uuid4()
    runs = [fine.pk, waits.pk, busy.pk]

    def once() -> actions.Moved:
        return actions.move_runs(
            person=house.operator, tenant=house.tenant, runs=runs, version="2", note=NOTE, submission=form
        )

    first = once()

    assert set(first.moved) == {fine.pk, waits.pk}
    assert {run: [o.code for o in why] for run, why in first.refused.items()} == {busy.pk: ["working"]}
    assert [kinds(run).count("VersionMoved") for run in (fine, waits, busy)] == [1, 1, 0]
    runs.clear()
    assert once() == first == actions.moved_by(form, house.operator)
    assert actions.moved_by(form, house.viewer).moved == ()


def test_many_that_were_cut_off_are_finished_by_the_same_form(
    house: House, world: World, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [house.waiting(str(number)).pk for number in range(3)]
    serve("SAME")
    form, real = uuid4(), decide.moved

    def dies_at_the_last(state: RunState, **more: Any) -> Any:
        if state.identity.run == runs[-1]:
            raise SystemExit
        return real(state, **more)

    monkeypatch.setattr(decide, "moved", dies_at_the_last)
    sent = {
        "person": house.operator,
        "tenant": house.tenant,
        "version": "2",
        "note": NOTE,
        "submission": form,
    }
    with pytest.raises(SystemExit):
        actions.move_runs(runs=runs, **sent)  # type: ignore[arg-type]  # the same form each time
    monkeypatch.undo()
    assert len(actions.moved_by(form, house.operator).moved) == 2

    left = list(Run.objects.filter(agent_version="1").values_list("pk", flat=True))
    done = actions.move_runs(runs=left, **sent)  # type: ignore[arg-type]  # the same form each time

    assert (set(done.moved), dict(done.refused)) == (set(runs), {})


def test_a_form_of_another_action_moves_nothing(house: House, world: World, serve: Any) -> None:
    run, other, form = house.waiting(), house.start("9"), uuid4()
    serve("SAME")
    actions.cancel_run(person=house.operator, run_id=other.pk, note="no", submission=form)
    with pytest.raises(Refused):
        actions.move_runs(
            person=house.operator, tenant=house.tenant, runs=[run.pk], version="2", note=NOTE, submission=form
        )
    assert kinds(run).count("VersionMoved") == 0


def test_a_restart_binds_the_successor_to_the_code_it_starts_with(
    house: House, world: World, serve: Any
) -> None:
    run = house.start()
    unserved(run)
    serve("SAME")
    done = actions.restart_run(person=house.operator, run_id=run.pk, note="go", submission=uuid4())
    state = load(done.run)
    assert (state.identity.agent_version, state.identity.code["prompt"]) == ("2", "p-2")
