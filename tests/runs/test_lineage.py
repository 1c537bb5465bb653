"""One operation, two runs: in a lineage answered, waited for or a conflict; outside a conflict, unless ids repeat."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accounts.rights import Right, grant_right
from runs.clock import database_now
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine.state import EffectStatus, State
from runs.machine.transitions import Decision
from runs.models import Effect, Event, Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance
from tests.runs.relatives import relative
from tests.runs.test_attest import attest
from tests.runs.test_evidence import kinds
from tests.runs.test_planning import codes
from tests.runs.test_sends import _in_another_process


def waits(run: Run) -> list[e.AttemptFailed]:
    return [r.event for r in log(run.pk) if isinstance(r.event, e.AttemptFailed)]


def test_what_stands_in_the_lineage_answers_the_step(house: House, world: World) -> None:
    first = house.start()
    advance(first)

    state = advance(relative(house, first))

    assert state.state is State.SUCCEEDED
    assert world.calls == ["pay:1042", "tell:1042"]
    answered = [r.event for r in log(state.identity.run) if isinstance(r.event, e.StepAnswered)]
    assert [(x.step, x.run, x.effect, x.reference) for x in answered] == [
        ("pay:1042", first.pk, 1, "ref-pay:1042"),
        ("tell:1042", first.pk, 2, "ref-tell:1042"),
    ]


def test_with_other_arguments_both_are_shown(house: House, world: World) -> None:
    first = house.start()
    advance(first)

    state = advance(relative(house, first, amount="60.00"))

    assert codes(state) == ["effect_conflict"]
    assert all(part in state.reasons[0].evidence for part in ("50.00", "60.00", first.pk))
    assert world.times("pay:1042") == 1


def test_arguments_that_were_erased_are_shown_by_their_digest(house: House, world: World) -> None:
    first = house.start()
    advance(first)
    Event.objects.filter(run=first, type="EffectIntended").update(body=None)
    second = relative(house, first, amount="60.00")

    found = _in_another_process(second)

    assert codes(found) == ["effect_conflict"]
    assert Effect.objects.get(run=first, number=1).arguments_digest in found.reasons[0].evidence
    Run.objects.filter(pk=first.pk).update(seq=0)  # no check after the test can read its log any more


def test_another_account_is_another_effect_and_a_conflict(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = house.start()
    advance(first)
    monkeypatch.setattr("tests.outside.Pay.account", "other")

    state = advance(relative(house, first))

    assert codes(state) == ["effect_conflict"]
    assert "acct" in state.reasons[0].evidence and "other" in state.reasons[0].evidence
    assert world.times("pay:1042") == 1


def test_what_is_unknown_in_the_lineage_is_settled_first(house: House, world: World, clock: Clock) -> None:
    world.answers, world.outage = ["lost"], "503"
    first = house.start()
    assert advance(first).state is State.UNKNOWN
    second = relative(house, first)

    state = advance(second)

    assert (state.state, state.effects) == (State.EXECUTING, {})
    (wait,) = waits(second)
    assert wait.held_by == f"{first.pk} E-1" and "unknown" in wait.detail
    assert world.times("pay:1042") == 1

    world.outage = ""
    clock.move(timedelta(seconds=3))
    assert advance(first).state is State.SUCCEEDED
    assert advance(second).state is State.SUCCEEDED
    assert world.times("pay:1042") == 1
    assert "StepAnswered" in kinds(second)


def test_what_is_in_flight_in_the_lineage_is_waited_for(house: House, world: World) -> None:
    first = house.start()
    second = relative(house, first)
    found = []

    def hook(when: str) -> None:
        if when == "before":
            world.hook = None
            found.append(_in_another_process(second))

    world.hook = hook
    advance(first)

    assert (found[0].state, found[0].effects) == (State.EXECUTING, {})
    assert "in_flight" in waits(second)[0].detail
    assert world.times("pay:1042") == 1


def test_nobody_waits_for_ever(house: House, world: World, clock: Clock) -> None:
    world.answers, world.outage = ["lost"], "503"
    first = house.start(tool="pay_blind")
    assert codes(advance(first)) == ["effect_unknown"]
    second = relative(house, first, tool="pay_blind")

    state, tries = advance(second), 0
    while state.state is State.EXECUTING and tries < 20:
        assert state.retry_at is not None and state.effects == {}
        clock.move(state.retry_at - state.at)
        state, tries = advance(second), tries + 1

    gaps = [wait.retry_at for wait in waits(second)]
    assert codes(state) == ["effect_conflict"]
    assert first.pk in state.reasons[0].evidence
    assert 3 <= len(gaps) <= 5  # 1, 2 and 4 s are more than the patience of 6 s
    assert state.blocked is None
    house.choose(second, Decision.RESUME)
    assert advance(second).blocked is not None
    assert world.times("pay:1042") == 1


def test_an_operation_that_did_not_happen_elsewhere_stands_in_nobodys_way(house: House, world: World) -> None:
    world.answers = ["refused"]
    first = house.start()
    assert codes(advance(first)) == ["tool_failed"]

    assert advance(relative(house, first)).state is State.SUCCEEDED
    assert world.times("pay:1042") == 1


def test_a_resend_finds_what_another_run_did_meanwhile(house: House, world: World, clock: Clock) -> None:
    """Two people stated that it did not happen; before it was sent again the other run did it."""
    for person in (house.operator, house.second):
        grant_right(to=person, right=Right.ATTEST_EFFECTS, obj=house.agent, actor=None, now=database_now())
    world.answers = ["silent"]
    first = house.start(tool="pay_blind")
    advance(first)
    clock.move(timedelta(seconds=3))
    for person in (house.operator, house.second):
        attest(first, person, happened=False, reference="")
    advance(relative(house, first, tool="pay_blind"))

    state = advance(first)

    assert state.state is State.SUCCEEDED
    assert state.effects[1].status is EffectStatus.NOT_EXECUTED
    assert "StepAnswered" in kinds(first) and "EffectSent" not in kinds(first)
    assert world.times("pay:1042") == 1


def test_ids_that_repeat_are_no_conflict_outside_the_lineage(house: House, world: World) -> None:
    first, second = house.start(tool="pay_anyone"), house.start(tool="pay_anyone", amount="60.00")
    advance(first)

    state = advance(second)

    # The mail's ids do not repeat: only the payment is done a second time.
    assert (codes(state), state.reasons[0].subject) == (["effect_conflict"], "tell:1042")
    assert [a["amount"] for i, _, a in world.executed if i == "pay:1042"] == ["50.00", "60.00"]


def test_ids_that_repeat_are_one_effect_within_the_lineage(house: House, world: World) -> None:
    first = house.start(tool="pay_anyone")
    advance(first)

    assert advance(relative(house, first, tool="pay_anyone")).state is State.SUCCEEDED
    assert world.times("pay:1042") == 1


def test_an_unknown_effect_whose_ids_repeat_is_told_by_its_key(house: House, world: World) -> None:
    first, second = house.start(tool="pay_anyone"), house.start(tool="pay_anyone", amount="60.00")
    advance(first)
    world.answers = ["lost"]

    state = advance(second)

    assert state.effects[1].status is EffectStatus.CONFIRMED
    assert state.effects[1].receipt is not None and state.effects[1].receipt.source == "query"
    assert load(second.pk).reasons[0].subject == "tell:1042"
