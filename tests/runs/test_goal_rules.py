"""Who may revise a goal and who may then approve; what is refused; what a successor begins with; a race with a send."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from uuid import uuid4

import pytest
from pytest_django import Settings

from accounts.rights import Right, grant_right
from approvals.models import Attempt, Verdict
from approvals.outcomes import SeparationOfDutiesError
from approvals.policy import Party, RulePolicy
from runs import actions, agents, engine, recovery
from runs.access import NotPermitted, RunNotFound
from runs.actions import GoalRefused, ImpactMoved
from runs.clock import database_now
from runs.ledger import load
from runs.limits import LONGEST_GOAL
from runs.machine.decide import GoalMoved, GoalUnchanged, goal_impact
from runs.machine.state import RunState, State
from runs.machine.transitions import Refused
from runs.models import Run
from tests.outside import PAYER, POLICY, World
from tests.people import House, advance, assert_replays
from tests.runs.scripted import Script, pay, plan
from tests.runs.test_evidence import kinds
from tests.runs.test_fencing import _at_once
from tests.runs.test_restart import restart
from tests.runs.test_taking_back import _to_the_end

RACES = 24


def test_the_successor_begins_with_the_committed_goal_and_who_wrote_it(house: House, world: World) -> None:
    world.answers = ["refused"]
    run = house.start("7", "1.00")
    advance(run)
    house.revise(run, "Pay half of order 7", by=_kim(house))

    second = restart(house, run)
    third_from = load(second.pk)

    assert [g.text for g in third_from.goals] == ["Pay half of order 7"]
    goal = third_from.goal
    assert (goal.version, goal.author.name, goal.reason) == (1, "Second", "it was too much")
    assert goal.taken and (goal.taken.run, goal.taken.version) == (run.pk, 2)
    assert third_from.goal_reviser == str(house.second.pk)


def _kim(house: House):  # type: ignore[no-untyped-def]
    """An approver who may revise goals too."""
    grant_right(to=house.second, right=Right.REVISE_GOALS, obj=house.agent, actor=None, now=database_now())
    return house.second


@pytest.fixture
def strict(house: House, settings: Settings) -> Iterator[House]:
    """The policy keeps whoever revised a goal from approving plans for it."""
    settings.HANDOFF_AGENTS = ["tests.runs.test_goal_rules:STRICT"]
    agents.registered.cache_clear()
    yield house


RULES = tuple(replace(rule, not_by=frozenset({Party.GOAL_REVISER})) for rule in POLICY.rules)
STRICT = replace(PAYER, policy=RulePolicy(version="1", rules=RULES))


def test_who_wrote_the_goal_does_not_approve_plans_for_it(strict: House, world: World) -> None:
    """Only that version's: for the next one, which somebody else wrote, the same person may."""
    run = strict.waiting()
    strict.revise(run, "Pay half of it", by=_kim(strict))
    advance(run)

    with pytest.raises(SeparationOfDutiesError) as refused:
        strict.decide(run, strict.second)
    assert refused.value.rule == "goal_reviser"

    strict.revise(run, "Pay a third of it")
    assert dict(advance(run).requests[-1].excluded) == {str(strict.operator.pk): "goal_reviser"}
    strict.decide(run, strict.second)
    assert advance(run).state is State.SUCCEEDED


def test_who_wrote_it_before_a_restart_does_not_approve_either(strict: House, world: World) -> None:
    run = strict.waiting()
    strict.revise(run, "Pay half of it", by=_kim(strict))
    advance(run)
    strict.decide(run, strict.approver, Verdict.REJECT, "we begin anew with this")

    successor = restart(strict, run)
    advance(successor)

    with pytest.raises(SeparationOfDutiesError):
        strict.decide(successor, strict.second)


def test_it_takes_its_right_and_one_form_is_one_revision(house: House, world: World) -> None:
    run, submission = house.waiting(), uuid4()
    for person, refusal in ((house.viewer, NotPermitted), (house.stranger, RunNotFound)):
        with pytest.raises(refusal):
            house.revise(run, by=person)
    impact = goal_impact(load(run.pk)).digest
    form = partial(
        actions.revise_goal, person=house.operator, run_id=run.pk, text="Pay half", reason="it was too much",
        expected=1, impact=impact, submission=submission,
    )  # fmt: skip
    assert not form().repeated
    assert form().repeated
    assert kinds(run).count("GoalRevised") == 1
    assert not Attempt.objects.exists()


def test_what_cannot_be_recorded_is_refused_and_changes_nothing(house: House, world: World) -> None:
    run = house.waiting()
    seq = load(run.pk).seq
    with pytest.raises(GoalUnchanged):
        house.revise(run, "Pay order 2000")
    for text, reason, field, problem in (
        (" \n", "it was too much", "text", "empty"),
        ("x" * (LONGEST_GOAL + 1), "it was too much", "text", "long"),
        ("Pay half", "no", "reason", "short"),
        ("Pay half", "x" * 4001, "reason", "long"),
    ):
        with pytest.raises(GoalRefused) as refused:
            house.revise(run, text, reason=reason)
        assert (refused.value.field, refused.value.problem) == (field, problem)
    assert load(run.pk).seq == seq
    hostile = "Pay\u202e half <img src=x>\u0000 的一半"
    assert house.revise(run, hostile).goal.text == "Pay\u202e half <img src=x>\\u0000 的一半"


def test_of_two_people_the_second_is_told_of_the_first(house: House, world: World) -> None:
    run = house.waiting()
    page = load(run.pk)
    first, second = (
        partial(
            actions.revise_goal, person=house.operator, run_id=run.pk, text=text, reason="it was too much",
            expected=1, impact=goal_impact(page).digest, submission=uuid4(),
        )
        for text in ("Pay half", "Pay a third")
    )  # fmt: skip
    first()

    with pytest.raises(GoalMoved) as refused:
        second()

    assert (refused.value.expected, refused.value.committed.text) == (1, "Pay half")


def test_what_would_do_something_else_than_was_shown_is_refused(house: House, world: World) -> None:
    run = house.waiting()
    shown = goal_impact(load(run.pk))
    house.decide(run, house.approver)  # the request became an approval

    with pytest.raises(ImpactMoved) as refused:
        actions.revise_goal(
            person=house.operator, run_id=run.pk, text="Pay half", reason="it was too much", expected=1,
            impact=shown.digest, submission=uuid4(),
        )  # fmt: skip

    assert (shown.status, refused.value.now.status) == ("pending", "valid")
    actions.attach_file(
        person=house.operator, run_id=run.pk, name="a", media_type="text/plain", data=b"a", submission=uuid4()
    )
    house.revise(run)


def test_it_races_a_send(house: House, script: Script, world: World) -> None:
    """Each time either the intent was committed first, or nothing was called for the goal before."""
    first, ahead = {"sent": 0, "revised": 0}, 0.0
    for number in range(RACES):
        script.proposals = [
            plan(pay(f"pay:{number}", order=str(number), amount="1.00")),
            plan(pay("other", "x")),
        ]
        script.needed = number % 2  # with an approval to void, and without
        run = house.start()
        if script.needed:
            engine.advance(run.pk)
            house.decide(run, house.approver)
        held = recovery.claim(run.pk)
        assert held is not None
        while not (held.state.state is State.EXECUTING and held.validated(held.state)):
            assert engine._step(held)
        script.needed = 1

        def revising(run: Run = run) -> None:
            state = load(run.pk)
            try:
                _revise(house, run, state)
            except ImpactMoved:
                _revise(house, run, load(run.pk))

        _at_once(partial(_to_the_end, held, ahead), revising)
        held.__exit__(None, None, None)
        told = kinds(run)
        sent = "EffectIntended" in told
        assert world.times(f"pay:{number}") == sent
        if sent and "GoalRevised" in told:
            assert told.index("EffectIntended") < told.index("GoalRevised")
        first["sent" if sent else "revised"] += 1
        ahead = ahead + 0.004 if sent else max(0.0, ahead - 0.004)
        assert_replays(run)
    assert all(first.values()), f"one side always came first: {first}"


def _revise(house: House, run: Run, state: RunState) -> None:
    try:
        actions.revise_goal(
            person=house.operator, run_id=run.pk, text="Pay nothing", reason="it was too much",
            expected=state.goal.version, impact=goal_impact(state).digest, submission=uuid4(),
        )  # fmt: skip
    except Refused:
        return  # it was over by then
