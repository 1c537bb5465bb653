"""What was read grows too old and is read again first: the same value goes on, another one is planned anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

import pytest
from pytest_django import Settings

from console.env import BadEnvironment, lengths
from runs import actions, agents, facts
from runs.access import NotPermitted
from runs.clock import database_now
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.transitions import Refused
from runs.models import Run
from runs.pages import observed, timeline
from runs.tools import Executed, Reading
from runs.views.observations import reread_of
from tests.fixtures.clock import Clock
from tests.outside import PAYER, LookUp, World
from tests.people import House, advance, assert_replays

LIMIT = LookUp.half_life


@pytest.fixture
def totals(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the shop says each order comes to, beside its version."""
    said: dict[str, str] = {}
    read = LookUp.read

    def with_total(self: LookUp, arguments: Mapping[str, Any], *, timeout: timedelta) -> Reading:
        found = read(self, arguments, timeout=timeout)
        return replace(found, value={**found.value, "total": said.get(arguments["order"], "50.00")})

    monkeypatch.setattr(LookUp, "read", with_total)
    return said


def reads(run: Run) -> list[int]:
    """The seqs at which the order was read."""
    return [r.seq for r in log(run.pk) if isinstance(r.event, e.ObservationRecorded)]


def told(run: Run, kind: type[e.Event]) -> str:
    """What the timeline says of the latest event of that type."""
    return timeline.sentence(next(r.event for r in reversed(list(log(run.pk))) if isinstance(r.event, kind)))


def test_after_a_gap_the_same_value_goes_on_and_the_log_says_so(
    house: House, world: World, totals: dict[str, str], clock: Clock
) -> None:
    run = house.waiting()
    clock.move(2 * LIMIT)
    advance(run)
    actions.renew_request(person=house.operator, run_id=run.pk, request=uuid4(), submission=uuid4())
    house.decide(run, house.approver)

    state = advance(run)

    assert state.state is s.State.SUCCEEDED
    assert len(reads(run)) == 2 and reads(run)[1] < state.effects[1].intent_seq
    assert told(run, e.RevalidationPassed).endswith("Read again and as it was: order:2000.")
    (row,) = observed.rows(state, list(log(run.pk)), database_now())
    assert "the same, so the run went on" in row["again"]


def test_another_value_at_the_same_version_is_planned_anew_and_says_by_how_much(
    house: House, world: World, totals: dict[str, str]
) -> None:
    run = house.approved()
    totals["2000"] = "62.50"

    state = advance(run)

    assert world.executed == [] and state.state is s.State.WAITING_APPROVAL
    assert [x.what for x in state.plans[0].voided] == ["observations"]
    said = told(run, e.PlanVoided)
    assert "What was read about order:2000 changed: total 50.00 → 62.50 (+12.50)." in said
    assert "what was read is still so (order:2000): total 50.00 → 62.50 (+12.50)" in told(
        run, e.RevalidationRefused
    )


def test_what_grew_too_old_while_the_steps_before_were_done_is_read_before_the_next_send(
    house: House, world: World, totals: dict[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first step takes longer than what the second one rests on may be taken for true."""
    run = two_steps(house, monkeypatch)
    world.hook = lambda when: clock.move(2 * LIMIT) if when == "after" and len(world.executed) == 1 else None
    totals["2"] = "50.00"

    state = advance(run)

    assert state.state is s.State.SUCCEEDED
    again = [seq for seq in reads(run) if seq > state.effects[1].intent_seq]
    assert again and max(again) < state.effects[2].intent_seq
    assert world.times("pay:1") == world.times("tell:1") == 1


def test_and_where_it_is_otherwise_then_the_next_step_is_not_sent(
    house: House, world: World, totals: dict[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = two_steps(house, monkeypatch)

    def later(when: str) -> None:
        if when == "after" and len(world.executed) == 1:
            clock.move(2 * LIMIT)
            totals["1"] = "49.00"

    world.hook = later

    state = advance(run)

    assert [x.what for x in state.plans[0].voided] == ["observations"]
    assert state.effects[2].plan_version == 2  # planned anew with what is so now, and done
    assert "total 50.00 → 49.00 (-1.00)" in told(run, e.PlanVoided)


def two_steps(house: House, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of two steps that rest on the same order, not begun yet."""
    propose = type(PAYER.planner).propose

    def resting(self: Any, view: agents.View) -> agents.Proposal:
        made = propose(self, view)
        if isinstance(made, agents.Plan):
            look = agents.Read(tool="look_up", arguments={"order": "1"})
            steps = tuple(replace(x, rests_on=(look,)) for x in made.steps if isinstance(x, agents.Step))
            return replace(made, steps=steps)
        return made

    monkeypatch.setattr(type(PAYER.planner), "propose", resting)
    return house.start("1")


def test_what_cannot_be_read_again_stops_for_a_person(
    house: House, world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = two_steps(house, monkeypatch)

    def closes(when: str) -> None:
        if when == "after":
            clock.move(2 * LIMIT)
            world.unreadable = "the shop is closed"

    world.hook = closes

    for _ in range(5):
        state = advance(run)
        clock.move(timedelta(minutes=1))

    assert [(r.code, r.evidence) for r in state.reasons] == [("observation_stale", "the shop is closed")]
    assert [x[0] for x in world.executed] == ["pay:1"]


def test_a_value_that_the_runs_own_receipt_made_is_no_other_value(
    house: House, world: World, totals: dict[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first payment changes the order that the second step rests on, and says to which version."""
    run = two_steps(house, monkeypatch)
    call = type(PAYER.writing("pay")).call

    def changing(self: Any, sent: Any) -> Any:
        answer, order = cast(Executed, call(self, sent)), sent.arguments["order"]
        world.versions[order], totals[order] = "v2", "0.00"
        clock.move(2 * LIMIT)
        return replace(answer, versions={f"order:{order}": "v2"})

    monkeypatch.setattr(type(PAYER.writing("pay")), "call", changing)

    state = advance(run)

    assert (state.state, len(state.plans)) == (s.State.SUCCEEDED, 1)
    assert len(reads(run)) > 2


def test_operators_and_agents_say_how_long_a_kind_of_resource_may_be_taken_for_current(
    settings: Settings,
) -> None:
    tool, order, other = LookUp(), "order:7", "price:7"
    assert facts.half_life_of(tool, order, {}) == tool.half_life
    own = {"order": timedelta(minutes=1)}
    assert facts.half_life_of(tool, order, own) == timedelta(minutes=1)
    settings.HANDOFF_HALF_LIVES = {"order": timedelta(seconds=5)}
    assert facts.half_life_of(tool, order, own) == timedelta(seconds=5)
    assert facts.half_life_of(tool, other, own) == tool.half_life


def test_what_was_read_is_kept_with_that_half_life(house: House, world: World, settings: Settings) -> None:
    settings.HANDOFF_HALF_LIVES = {"order": timedelta(seconds=77)}
    run = house.waiting()
    (seen,) = load(run.pk).observations.values()
    assert seen.half_life == timedelta(seconds=77)


def test_half_lives_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDOFF_HALF_LIVES", "order=5m, price = 30s,stock=2h,contract=1d")
    assert lengths("HANDOFF_HALF_LIVES") == {
        "order": timedelta(minutes=5), "price": timedelta(seconds=30), "stock": timedelta(hours=2),
        "contract": timedelta(days=1),
    }  # fmt: skip
    for wrong in ("order", "order=", "order=5", "=5m", "order=0s", "order=5w", "order=-5m"):
        monkeypatch.setenv("HANDOFF_HALF_LIVES", wrong)
        with pytest.raises(BadEnvironment, match="HANDOFF_HALF_LIVES"):
            lengths("HANDOFF_HALF_LIVES")


def reread(house: House, run: Run, **more: Any) -> s.RunState:
    """The operator has everything read once more."""
    made = facts.read_once(LookUp(), '{"order":"2000"}', database_now(), tenant=str(house.tenant.pk))
    assert made.event is not None
    actions.reread_observations(
        **{"person": house.operator, "run_id": run.pk, "found": [(reread_of(made.event), made.kept)],
           "submission": uuid4(), **more}
    )  # fmt: skip
    return assert_replays(run)


def test_a_person_has_it_read_again_and_nothing_moves(
    house: House, world: World, totals: dict[str, str], clock: Clock
) -> None:
    run = house.waiting()
    before = load(run.pk)
    clock.move(2 * LIMIT)

    after = reread(house, run)

    (was,), (now,) = before.observations.values(), after.observations.values()
    assert (now.value, now.reread) == (was.value, None) and now.current(database_now())
    moved = {"seq", "at", "observations"}
    assert {n for n in after.__struct_fields__ if getattr(after, n) != getattr(before, n)} <= moved


def test_what_a_person_finds_otherwise_stands_beside_it_and_the_run_finds_it_by_itself(
    house: House, world: World, totals: dict[str, str]
) -> None:
    run = house.approved()
    totals["2000"] = "62.50"

    beside = reread(house, run)

    (seen,) = beside.observations.values()
    assert seen.reread is not None and "50.00" in seen.value and "62.50" in seen.reread.value
    assert beside.state is s.State.APPROVED
    (row,) = observed.rows(beside, list(log(run.pk)), database_now())
    assert "Read again by Operator at" in row["again"]
    assert "it is otherwise: total 50.00 → 62.50 (+12.50)" in row["again"]
    state = advance(run)
    assert [x.what for x in state.plans[0].voided] == ["observations"] and world.executed == []


def test_reading_again_takes_the_right_and_a_run_that_goes_on(house: House, world: World) -> None:
    run = house.waiting()
    with pytest.raises(NotPermitted):
        reread(house, run, person=house.viewer)
    house.cancel(run)
    advance(run)
    with pytest.raises(Refused):
        reread(house, run)
