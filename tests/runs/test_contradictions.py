"""Evidence that contradicts the record of a settled effect: it stops the run, and a person finds which is true."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from accounts.models import User
from accounts.rights import Right, grant_right
from runs import access, actions, recovery
from runs.clock import database_now
from runs.ledger import load
from runs.machine import decide
from runs.machine import events as e
from runs.machine.decide import ConclusionRefused
from runs.machine.safety import Action, next_safe_action
from runs.machine.state import EffectStatus, Finding, RunState, State
from runs.machine.transitions import Decision, Refused
from runs.models import Run
from runs.queries import annotated, counted_for, disputed
from tests.accounts.world import wait_until
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.relatives import relative
from tests.runs.scripted import Script, pay, plan
from tests.runs.test_evidence import _late, _overtaken, kinds
from tests.runs.test_planning import codes


@pytest.fixture(autouse=True)
def _two_may_attest(house: House) -> None:
    for person in (house.operator, house.second):
        for right in (Right.ATTEST_EFFECTS, Right.RECONCILE_EFFECTS):
            grant_right(to=person, right=right, obj=house.agent, actor=None, now=database_now())


def find(run: Run, person: User, finding: Finding, reference: str = "", effect: int = 1) -> RunState:
    came = load(run.pk).effects[effect].contradicted
    assert came is not None
    actions.settle_contradiction(
        person=person, run_id=run.pk, effect=effect, evidence=came.seq, finding=finding, reference=reference,
        how="The bank read it to me on the phone.", submission=uuid4(),
        signed_in_at=database_now(),
    )  # fmt: skip
    return assert_replays(run)


def done_then_refused(house: House, world: World, clock: Clock) -> Run:
    """Paid by the record; the run stops at its second effect; then an older holder hears "no"."""
    run = house.start()
    held = _overtaken(world, run, clock)
    world.answers = ["refused"]
    advance(run)
    _late(held, executed=False)
    return run


def not_done_then_done(house: House, world: World, clock: Clock) -> tuple[Run, recovery.Held]:
    """The bank found nothing and the run ended its stop; before it sent again an older holder hears "done"."""
    world.visible = False
    run = house.start()
    held = _overtaken(world, run, clock)
    world.outage = "503"
    advance(run)
    world.outage = ""
    clock.move(timedelta(minutes=5))
    for person in (house.operator, house.second):
        actions.attest_effect(
            person=person, run_id=run.pk, effect=1, happened=False, reference="", how="I called",
            submission=uuid4(),
            signed_in_at=database_now(),
        )  # fmt: skip
    assert load(run.pk).effects[1].status is EffectStatus.NOT_EXECUTED
    return run, held


def test_a_contradiction_waits_for_a_person_and_offers_nothing_else(
    house: House, world: World, clock: Clock
) -> None:
    run = done_then_refused(house, world, clock)

    state = assert_replays(run)

    action = next_safe_action(state)
    assert codes(state) == ["tool_failed", "effect_conflict"]
    assert (action.action, action.effect, action.right) == (Action.FIND, 1, "reconcile_effects")
    assert "send_again" in action.not_safe
    for decision in (Decision.RESUME, Decision.RETRY, Decision.REPLAN):
        with pytest.raises(Refused):
            house.choose(run, decision)


def test_as_recorded_ends_the_conflict_alone_and_nothing_is_lost(
    house: House, world: World, clock: Clock
) -> None:
    run = done_then_refused(house, world, clock)

    state = find(run, house.operator, Finding.AS_RECORDED)

    assert codes(state) == ["tool_failed"]
    assert state.effects[1].status is EffectStatus.CONFIRMED
    assert [x.finding for x in state.effects[1].late] == ["as_recorded"]
    house.choose(run, Decision.RETRY)
    state = advance(run)
    assert state.state is State.SUCCEEDED
    assert [(x.executed, x.contradicts) for x in state.effects[1].late] == [(False, True)]
    assert world.times("pay:1042") == 1


def test_a_run_whose_only_reason_it_was_goes_on_after_all_checks(
    house: House, world: World, clock: Clock
) -> None:
    run, held = not_done_then_done(house, world, clock)
    _late(held, executed=True)
    state = assert_replays(run)
    assert codes(state) == ["effect_conflict"]

    find(run, house.operator, Finding.HAPPENED)
    state = find(run, house.second, Finding.HAPPENED)

    assert state.state is State.EXECUTING
    assert state.returned_seq == state.seq
    assert advance(run).state is State.SUCCEEDED
    assert world.calls.count("pay:1042") == 1
    assert kinds(run).count("RevalidationPassed") >= 2


def test_what_happened_is_confirmed_by_people_and_not_sent_again(
    house: House, world: World, clock: Clock
) -> None:
    run, held = not_done_then_done(house, world, clock)
    _late(held, executed=True, reference="ref-late")

    state = find(run, house.operator, Finding.HAPPENED)
    assert state.effects[1].status is EffectStatus.NOT_EXECUTED, "one person does not change the record"
    with pytest.raises(ConclusionRefused, match="second_person"):
        find(run, house.operator, Finding.HAPPENED)
    state = find(run, house.second, Finding.HAPPENED)

    effect = state.effects[1]
    assert effect.status is EffectStatus.CONFIRMED
    assert effect.receipt is not None
    assert (effect.receipt.source, effect.receipt.reference, effect.receipt.by_person) == (
        "finding", "ref-late", True,
    )  # fmt: skip
    assert state.done == {"pay:1042": 1}
    assert [o.text for o in state.open_obligations] == ["tell the supplier of 1042"]
    assert advance(run).state is State.SUCCEEDED
    assert world.calls.count("pay:1042") == 1


def test_what_did_not_happen_is_done_again_by_a_decision_in_a_new_round(
    house: House, world: World, clock: Clock
) -> None:
    run = done_then_refused(house, world, clock)

    find(run, house.operator, Finding.NOT_HAPPENED)
    state = find(run, house.second, Finding.NOT_HAPPENED)

    assert (state.state, codes(state)) == (State.NEEDS_HUMAN, ["tool_failed"])
    assert state.effects[1].status is EffectStatus.NOT_EXECUTED
    assert "pay:1042" not in state.done
    world.answers, before = [], len(world.calls)
    assert advance(run).seq == state.seq, "nothing is sent without a decision"
    house.choose(run, Decision.RETRY)
    state = advance(run)
    assert state.state is State.SUCCEEDED
    assert world.calls[before:][0] == "pay:1042#1"
    assert state.effects[3].key != state.effects[1].key


def test_a_successor_does_it_again_in_a_new_round(house: House, world: World, clock: Clock) -> None:
    run = done_then_refused(house, world, clock)
    find(run, house.operator, Finding.NOT_HAPPENED)
    find(run, house.second, Finding.NOT_HAPPENED)

    done = actions.restart_run(person=house.operator, run_id=run.pk, note="anew", submission=uuid4())
    state = advance(Run.objects.get(pk=done.run))

    assert state.state is State.SUCCEEDED
    assert state.effects[1].operation_id == "pay:1042#1"


def test_it_is_not_found_too_early_that_it_did_not_happen(house: House, world: World, clock: Clock) -> None:
    run = done_then_refused(house, world, clock)
    clock.move(timedelta(minutes=-10))

    with pytest.raises(ConclusionRefused, match="too_early"):
        find(run, house.operator, Finding.NOT_HAPPENED)


def test_what_happened_twice_is_owed_and_told(
    house: House, world: World, clock: Clock, script: Script
) -> None:
    script.proposals = [plan(pay(order="1042"), pay("second", order="8"))]
    run = house.start()
    held = _overtaken(world, run, clock)
    world.answers = ["refused"]
    advance(run)
    _late(held, executed=True, reference="ref-two")

    state = find(run, house.operator, Finding.HAPPENED_TWICE)

    assert codes(state) == ["tool_failed"]
    assert state.effects[1].status is EffectStatus.CONFIRMED
    (owed,) = state.open_obligations
    assert "ref-two" in owed.text and owed.by == "undo:pay:7"
    assert "ref-two" in state.advice[-1]
    house.choose(run, Decision.RETRY)
    assert codes(advance(run)) == ["obligation_open"], "it does not succeed before that is undone"
    script.proposals = [plan(pay("undo:pay:7", order="9"))]
    house.choose(run, Decision.REPLAN)
    assert advance(run).state is State.SUCCEEDED


@pytest.mark.parametrize("ending", [State.SUCCEEDED, State.CANCELLED])
def test_a_closed_run_stays_closed_and_in_the_inbox_until_it_is_settled(
    house: House, world: World, clock: Clock, ending: State
) -> None:
    run = house.start()
    held = _overtaken(world, run, clock)
    if ending is State.CANCELLED:
        house.cancel(run)
    assert advance(run).state is ending
    before = counted_for(house.operator, database_now()).waiting or 0

    _late(held, executed=True, reference="ref-two")

    state = assert_replays(run)
    assert (state.state, codes(state)) == (ending, ["effect_conflict"])
    assert next_safe_action(state).action is Action.FIND
    shown = annotated(house.operator, database_now()).get(pk=run.pk)
    assert shown.reasons == ["effect_conflict"]
    assert disputed([run.pk]) == {run.pk: (1, "ref-two")}
    owing = int(ending is State.CANCELLED)  # it owed something before, and was there for that
    assert counted_for(house.operator, database_now()).waiting == before + 1 - owing

    state = find(run, house.operator, Finding.AS_RECORDED)

    assert (state.state, codes(state), disputed([run.pk])) == (ending, [], {})
    assert next_safe_action(state).action is Action.NONE
    assert counted_for(house.operator, database_now()).waiting == before


def test_a_run_that_is_ended_over_it_keeps_it_for_a_person(house: House, world: World, clock: Clock) -> None:
    run = done_then_refused(house, world, clock)
    house.cancel(run)

    state = advance(run)

    assert (state.state, codes(state)) == (State.CANCELLED, ["effect_conflict"])
    assert find(run, house.operator, Finding.AS_RECORDED).reasons == ()


def test_the_same_evidence_once_more_is_no_new_contradiction(
    house: House, world: World, clock: Clock
) -> None:
    run = house.start()
    held = _overtaken(world, run, clock)
    advance(run)
    _late(held, executed=True, reference="ref-two")
    find(run, house.operator, Finding.AS_RECORDED)

    _late(held, executed=True, reference="ref-two")
    assert load(run.pk).reasons == ()
    _late(held, executed=True, reference="ref-three")
    assert codes(load(run.pk)) == ["effect_conflict"]


def test_two_contradictions_are_settled_one_by_one(house: House, world: World, clock: Clock) -> None:
    run = house.start()
    held = _overtaken(world, run, clock)
    world.answers = ["refused"]
    advance(run)
    _late(held, executed=True, reference="ref-two")
    _late(held, executed=False)

    state = find(run, house.operator, Finding.AS_RECORDED)
    assert codes(state) == ["tool_failed", "effect_conflict"]
    state = find(run, house.operator, Finding.AS_RECORDED)
    assert codes(state) == ["tool_failed"]


def test_settling_another_effect_does_not_settle_the_contradiction(
    house: House, world: World, clock: Clock
) -> None:
    """The second effect is unknown and gets its receipt; the run still waits for a word about the first."""
    run = house.start(tool="pay")
    held = _overtaken(world, run, clock)
    world.answers, world.outage = ["lost"], ""
    world.hook = lambda when: (
        _late(held, executed=False) if len(world.calls) == 2 and when == "after" else None
    )
    advance(run)
    world.hook = None

    state = load(run.pk)
    assert codes(state) == ["effect_conflict"]
    assert state.state is State.NEEDS_HUMAN


def test_rights_and_forms(house: House, world: World, clock: Clock) -> None:
    run = done_then_refused(house, world, clock)
    came = load(run.pk).effects[1].contradicted
    assert came is not None
    grant_right(
        to=house.viewer, right=Right.RECONCILE_EFFECTS, obj=house.agent, actor=None, now=database_now()
    )

    for person, finding in (
        (house.approver, Finding.AS_RECORDED), (house.viewer, Finding.NOT_HAPPENED),
        (house.stranger, Finding.AS_RECORDED),
    ):  # fmt: skip
        with pytest.raises((access.NotPermitted, access.RunNotFound)):
            find(run, person, finding)
    submission = uuid4()
    for _ in range(2):
        done = actions.settle_contradiction(
            person=house.viewer, run_id=run.pk, effect=1, evidence=came.seq, finding=Finding.AS_RECORDED,
            reference="", how="The bank said so.", submission=submission,
            signed_in_at=database_now(),
        )  # fmt: skip
    assert done.repeated and kinds(run).count("ContradictionSettled") == 1
    with pytest.raises(Refused):
        actions.settle_contradiction(
            person=house.operator, run_id=run.pk, effect=1, evidence=came.seq, finding=Finding.AS_RECORDED,
            reference="", how="The bank said so.", submission=uuid4(),
            signed_in_at=database_now(),
        )  # fmt: skip


def test_what_another_run_did_meanwhile_cannot_have_happened_only_here(
    house: House, world: World, clock: Clock
) -> None:
    """The unique index would refuse the second one that stands: a clear refusal, and "it happened twice" instead."""
    run, held = not_done_then_done(house, world, clock)
    world.executed.clear()
    assert advance(relative(house, run)).state is State.SUCCEEDED
    _late(held, executed=True)

    with pytest.raises(ConclusionRefused, match="stands_again"):
        find(run, house.operator, Finding.HAPPENED)
    state = find(run, house.operator, Finding.HAPPENED_TWICE)

    assert state.effects[1].status is EffectStatus.NOT_EXECUTED
    assert [o.by for o in state.open_obligations] == ["undo:pay:1042"]


def test_another_run_that_comes_first_in_this_very_moment(
    house: House, world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, held = not_done_then_done(house, world, clock)
    world.executed.clear()
    advance(relative(house, run))
    _late(held, executed=True)
    monkeypatch.setattr("runs.actions.findings.stands_elsewhere", lambda *_: "")
    find(run, house.operator, Finding.HAPPENED)

    with pytest.raises(ConclusionRefused, match="stands_again"):
        find(run, house.second, Finding.HAPPENED)

    assert load(run.pk).effects[1].status is EffectStatus.NOT_EXECUTED


def test_a_run_that_took_it_for_done_stops_and_can_do_it_itself(
    house: House, world: World, clock: Clock
) -> None:
    run = done_then_refused(house, world, clock)
    second = relative(house, run)
    world.answers = ["refused"]
    advance(second)
    assert "StepAnswered" in kinds(second)

    find(run, house.operator, Finding.NOT_HAPPENED)
    find(run, house.second, Finding.NOT_HAPPENED)

    state = assert_replays(second)
    assert codes(state) == ["tool_failed", "effect_conflict"]
    assert "pay:1042" not in state.done
    house.choose(second, Decision.REPLAN)
    assert advance(second).effects[2].operation_id == "pay:1042#1"


def test_not_found_does_not_outweigh_a_receipt_that_came_late(
    house: House, world: World, clock: Clock
) -> None:
    """The outside lists nothing, but an older holder was told that it is done: nothing is sent again by itself."""
    world.outage = "503"
    run = house.start()
    held = _overtaken(world, run, clock)
    advance(run)
    _late(held, executed=True)
    world.outage, world.visible = "", False

    wait_until(lambda: advance(run).state is State.NEEDS_HUMAN, within=timedelta(seconds=20))

    assert codes(load(run.pk)) == ["effect_conflict"]
    assert world.calls == ["pay:1042"]


def test_a_round_that_was_raised_for_what_had_happened_is_not_sent(house: House, world: World) -> None:
    """Refused, so a person ordered another round; before it was sent it turned out that the first had happened."""
    world.answers = ["refused"]
    run = house.start()
    advance(run)
    house.choose(run, Decision.RETRY)
    late = decide.executed(
        load(run.pk), 1, reference="ref-late", evidence="{}", problem=None, versions={}, late=True
    )
    worker = e.Actor(e.ActorKind.WORKER, "old", "old")
    actions.write(load(run.pk), late, run=run, actor=worker, now=database_now())
    find(run, house.operator, Finding.HAPPENED)
    find(run, house.second, Finding.HAPPENED)

    state = advance(run)

    assert state.state is State.SUCCEEDED
    assert state.round_of(state.plans[-1].plan.steps[0]) == 0
    assert world.calls == ["pay:1042", "tell:1042"]
