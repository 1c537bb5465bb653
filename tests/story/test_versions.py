"""The old fleet is gone: its runs are moved to later versions by people, and the new fleet finishes them."""

from __future__ import annotations

from uuid import uuid4

import pytest
from pytest_django import Settings

from runs import actions, agents
from runs.machine import events as e
from runs.machine.state import EffectStatus, RequestStatus, RunState, State
from runs.models import Event, Run
from tests.fixtures.processes import Workers
from tests.story.test_workers import held
from tests.story.world import Story

OLD = "examples.refunds.agent:REFUNDS"
NEW = "tests.story.heirs:SAME,tests.story.heirs:CHANGED"
NOTE = "the old fleet is switched off"


@pytest.fixture
def everywhere(story: Story, settings: Settings) -> None:
    """The console has all versions; each fleet has its own."""
    settings.HANDOFF_AGENTS = [OLD, *NEW.split(",")]
    agents.registered.cache_clear()


def unserved(story: Story, run: Run) -> RunState:
    state = story.reaches(run, State.NEEDS_HUMAN, plan=0)
    assert [reason.code for reason in state.reasons] == ["version_unavailable"]
    return state


def move(story: Story, run: Run, version: str) -> None:
    actions.move_run(person=story.operator, run_id=run.pk, version=version, note=NOTE, submission=uuid4())


def test_the_new_fleet_finishes_what_the_old_one_began_and_sends_nothing_twice(
    story: Story, workers: Workers, everywhere: None
) -> None:
    waiting = story.waiting("2041")
    workers.beat()
    old = workers.start(environment={"HANDOFF_AGENTS": OLD})
    executed = held(story, "2042", hold_after=1)
    old.kill()
    begun = [story.start(order) for order in ("2043", "2044")]
    workers.start("--concurrency", "2", environment={"HANDOFF_AGENTS": NEW})

    _in_doubt_is_settled_first(story, executed)
    move(story, executed, "3")
    move(story, waiting, "2")
    story.approve(waiting)
    for run in begun:
        unserved(story, run)
    _all_at_once(story, begun)

    done = story.reaches(executed, State.SUCCEEDED, plan=2)
    assert [(c.what, c.subject) for c in done.plans[0].voided] == [("code", "tool:mail_supplier")]
    assert [x.operation_id for x in done.effects.values()].count("refund:order-2042") == 1
    assert len(done.effects[1].sends) == 1
    approved = story.reaches(waiting, State.SUCCEEDED)
    assert [request.status for request in approved.requests] == [RequestStatus.CONSUMED]
    for run in begun:
        story.reaches(run, State.SUCCEEDED)
    assert [story.times(order) for order in ("2041", "2042", "2043", "2044")] == [1, 1, 1, 1]
    moved = Event.objects.filter(type=e.VersionMoved.__name__)
    assert {(x.run_id, x.actor_kind) for x in moved} == {
        (run.pk, "person") for run in (waiting, executed, *begun)
    }


def _in_doubt_is_settled_first(story: Story, run: Run) -> None:
    """The old worker was killed in the call: nobody takes that over before it is known what became of it."""
    assert unserved(story, run).effects[1].status is EffectStatus.UNKNOWN
    with pytest.raises(actions.MoveRefused):
        move(story, run, "3")
    story.ask(run)
    state = story.conclude(run, happened=True)
    assert (state.state, [r.code for r in state.reasons]) == (State.NEEDS_HUMAN, ["version_unavailable"])


def _all_at_once(story: Story, runs: list[Run]) -> None:
    done = actions.move_runs(
        person=story.operator, tenant=story.agent.tenant, runs=[run.pk for run in runs], version="2", note=NOTE,
        submission=uuid4(),
    )  # fmt: skip
    assert (set(done.moved), dict(done.refused)) == ({run.pk for run in runs}, {})
