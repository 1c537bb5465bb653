"""Cancel: in every state it is taken once, sends nothing more, and leaves no effect behind that nobody knows about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest

from runs import actions, agents, engine, recovery
from runs.ledger import load
from runs.machine.state import EffectStatus, RequestStatus, RunState, State
from runs.machine.transitions import Decision, Refused
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance
from tests.runs.test_planning import codes


def _executing(house: House, world: World) -> Run:
    """Cancelled by a person while the first effect is being called."""
    run = house.start()

    def hook(when: str) -> None:
        if when == "after":
            world.hook = None
            house.cancel(run)

    world.hook = hook
    return run


def _stopped(house: House, world: World) -> Run:
    world.answers = ["refused"]
    run = house.start()
    advance(run)
    return run


BEFORE: dict[str, Callable[[House, World], Run]] = {
    "planning": lambda house, world: house.start(),
    "waiting_approval": lambda house, world: house.waiting(),
    "approved": lambda house, world: house.approved(),
    "needs_human": _stopped,
}


@pytest.mark.parametrize("state", BEFORE)
def test_a_run_with_nothing_open_ends_at_once(house: House, world: World, state: str) -> None:
    run = BEFORE[state](house, world)
    assert load(run.pk).state == state
    calls = list(world.calls)

    assert house.cancel(run).state is State.CANCELLING
    ended = advance(run)

    assert ended.state is State.CANCELLED
    assert world.calls == calls
    assert all(r.status is not RequestStatus.VALID for r in ended.requests)


def test_between_two_effects_the_second_is_not_sent(house: House, world: World) -> None:
    run = _executing(house, world)

    state = advance(run)

    assert state.state is State.CANCELLED
    assert world.calls == ["pay:1042"]
    assert state.effects[1].status is EffectStatus.CONFIRMED
    assert [o.handed_over for o in state.obligations] == [True]


def test_a_cancel_that_comes_just_before_the_send_stops_it(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = house.start()
    real = engine._send

    def send(held: recovery.Held) -> bool:
        monkeypatch.setattr(engine, "_send", real)
        house.cancel(run)
        return real(held)

    monkeypatch.setattr(engine, "_send", send)

    assert advance(run).state is State.CANCELLED
    assert world.calls == []


def _unknown(house: House, world: World) -> Run:
    """Executed, the answer lost, the outside silent."""
    world.answers, world.outage = ["lost"], "503"
    run = house.start()
    assert advance(run).state is State.UNKNOWN
    return run


def test_an_unknown_effect_is_settled_before_the_run_ends(house: House, world: World, clock: Clock) -> None:
    run = _unknown(house, world)
    assert house.cancel(run).state is State.UNKNOWN
    assert advance(run).state is State.UNKNOWN
    world.outage = ""
    clock.move(timedelta(seconds=5))

    state = advance(run)

    assert state.state is State.CANCELLED
    assert state.effects[1].status is EffectStatus.CONFIRMED
    assert world.calls == ["pay:1042"]


def test_what_turns_out_not_to_have_happened_is_not_sent_by_a_cancelled_run(
    house: House, world: World, clock: Clock
) -> None:
    world.answers, world.outage = ["silent"], "503"
    run = house.start()
    advance(run)
    house.cancel(run)
    _until_a_person(run, clock)
    world.outage = ""

    _asked(house, run)
    state = _conclude(house, run, happened=False)
    state = advance(run)

    assert state.state is State.CANCELLED
    assert state.effects[1].status is EffectStatus.NOT_EXECUTED
    assert world.executed == []


def test_with_an_effect_that_only_a_person_can_settle_it_ends_after_that(
    house: House, world: World, clock: Clock
) -> None:
    run = _unknown(house, world)
    _until_a_person(run, clock)
    assert house.cancel(run).state is State.NEEDS_HUMAN
    world.outage = ""
    _asked(house, run)

    _conclude(house, run, happened=True)

    assert advance(run).state is State.CANCELLED


def test_a_reason_that_is_left_does_not_hold_up_a_cancel(house: House, world: World, clock: Clock) -> None:
    """Stopped for making no progress with an effect unknown, cancelled, then settled: nobody has to ask again."""
    run = _unknown(house, world)
    for _ in range(recovery.CLAIMS_WITHOUT_EVENT + 1):
        clock.move(timedelta(seconds=3))
        recovery.claim(run.pk)
    assert codes(load(run.pk)) == ["no_progress"]
    house.cancel(run)
    world.outage = ""
    _asked(house, run)

    assert _conclude(house, run, happened=True).state is State.NEEDS_HUMAN

    assert advance(run).state is State.CANCELLED


def _until_a_person(run: Run, clock: Clock) -> RunState:
    for _ in range(12):
        clock.move(timedelta(seconds=2))
        state = advance(run)
        if state.state is State.NEEDS_HUMAN:
            return state
    raise AssertionError(f"still {state.state}")


def _asked(house: House, run: Run) -> RunState:
    """The operator asks the outside."""
    effect = load(run.pk).effects[1]
    tool = agents.registered()[("payer", "1")].writing(effect.tool)
    said, evidence, _ = recovery.ask(effect, tool)
    actions.record_answer(
        person=house.operator, run_id=run.pk, effect=1, answer=said, evidence=evidence, submission=uuid4()
    )
    return load(run.pk)


def _conclude(house: House, run: Run, *, happened: bool) -> RunState:
    ask = load(run.pk).effects[1].asks[-1]
    actions.conclude_effect(
        person=house.operator, run_id=run.pk, effect=1, happened=happened, asked=ask.seq, note="as it says",
        submission=uuid4(),
    )  # fmt: skip
    return load(run.pk)


def test_a_cancel_is_taken_once_and_never_by_a_run_that_is_over(house: House, world: World) -> None:
    done = house.start("1")
    advance(done)
    twice = house.start("2")
    house.cancel(twice)
    for run in (done, twice):
        before = load(run.pk)
        with pytest.raises(Refused):
            house.cancel(run)
        assert load(run.pk) == before
    advance(twice)
    with pytest.raises(Refused):
        house.cancel(twice)


def test_workers_that_start_after_a_cancel_send_nothing(house: House, world: World, clock: Clock) -> None:
    """Approved, then cancelled, while nobody works; every wake-up still comes, late and many times."""
    run = house.approved()
    house.cancel(run)
    for _ in range(5):
        engine.advance(run.pk)
        clock.move(timedelta(minutes=1))
    assert load(run.pk).state is State.CANCELLED
    assert world.calls == []


def test_an_answer_in_time_is_used_by_a_person_who_asks(house: House, world: World, clock: Clock) -> None:
    run = _unknown(house, world)
    state = _until_a_person(run, clock)
    assert codes(state) == ["effect_unknown"]
    with pytest.raises(Refused):
        house.choose(run, Decision.RESUME)
    world.outage = ""
    _asked(house, run)

    assert _conclude(house, run, happened=True).state is State.EXECUTING

    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:1042") == 1
