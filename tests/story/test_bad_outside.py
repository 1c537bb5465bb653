"""The service is down, slow, or answers what nobody can read: each run ends where it should, with the cause."""

from __future__ import annotations

from datetime import timedelta

import pytest

from console.ports import listen
from runs import engine
from runs.ledger import load
from runs.machine.state import EffectStatus, RunState, State
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.people import assert_replays
from tests.story.world import Story, until

TURNS = 30  #: of moving a run, until a test gives up


def _moved(run: Run, until: State, clock: Clock) -> RunState:
    """Move the run whenever its time has come, and the clock to that time, until it is in the state."""
    for _ in range(TURNS):
        engine.advance(run.pk)
        if load(run.pk).state is until:
            return assert_replays(run)
        row = Run.objects.get(pk=run.pk)
        assert row.wake_at, row.state
        clock.move(max(row.wake_at - clock.now(), timedelta()) + timedelta(milliseconds=1))
    raise AssertionError(load(run.pk))


@pytest.mark.parametrize(
    ("switch", "cause"),
    [
        ({"down": True}, "refuses the question"),
        ({"slow_seconds": 1.5}, "No whole answer within 1 seconds"),
        ({"answer_as": "html"}, "not JSON"),
        ({"answer_as": "truncated"}, "incomplete or malformed"),
    ],
)
def test_an_order_that_cannot_be_read_stops_the_run_for_a_person(
    story: Story, clock: Clock, switch: dict[str, object], cause: str
) -> None:
    run = story.start("2041")
    story.outside.set(**switch)

    state = _moved(run, State.NEEDS_HUMAN, clock)

    assert [r.code for r in state.reasons] == ["observation_stale"]
    assert cause in state.reasons[0].evidence
    assert (state.plans, state.effects, story.times("2041")) == ((), {}, 0)


@pytest.mark.parametrize(
    "switch",
    [
        {"slow_seconds": 1.5},  # executed, though nobody waited for the answer
        {"answer_as": "html"},
        {"answer_as": "truncated"},
        {"drop_after": 1},
        {"hold_after": 1},
    ],
)
def test_a_refund_whose_answer_is_lost_is_asked_about_and_never_repeated(
    story: Story, clock: Clock, switch: dict[str, object]
) -> None:
    run = story.start("2042")
    story.outside.set(**switch, outage=True, match_path="/payments/")

    stopped = _moved(run, State.NEEDS_HUMAN, clock)
    assert [r.code for r in stopped.reasons] == ["effect_unknown"]
    assert (stopped.effects[1].status, stopped.effects[1].receipt) == (EffectStatus.UNKNOWN, None)
    assert stopped.effects[1].unknown_detail
    until(lambda: story.times("2042") == 1)
    with story.outside.client() as client:
        client.post("/control/end-outage").raise_for_status()
    story.ask(run)
    story.conclude(run, happened=True)
    state = _moved(run, State.SUCCEEDED, clock)

    assert (story.times("2042"), len(state.effects[1].sends)) == (1, 1)


def test_a_service_that_goes_down_before_the_call_leaves_nothing_half_made(
    story: Story, clock: Clock
) -> None:
    run = story.waiting("2043")
    story.approve(run)
    story.outside.set(down=True)

    state = _moved(run, State.NEEDS_HUMAN, clock)

    assert [r.code for r in state.reasons] == ["observation_stale"]
    assert (state.effects, story.times("2043")) == ({}, 0)


def test_a_service_that_is_not_there_stops_the_run_with_that_cause(
    story: Story, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = story.start("2044")
    with listen(port=0) as free:
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("REFUNDS_SERVICE_URL", nobody)

    state = _moved(run, State.NEEDS_HUMAN, clock)

    assert [r.code for r in state.reasons] == ["observation_stale"]
    assert "No answer (ConnectError)" in state.reasons[0].evidence
    assert (state.plans, state.effects) == ((), {})
