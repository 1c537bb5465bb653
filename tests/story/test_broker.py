"""Messages are wake-ups: the broker may die under workers and beat, and every run still ends."""

from __future__ import annotations

from runs.machine.state import State
from tests.fixtures.brokers import Broker, killed
from tests.fixtures.processes import Workers
from tests.story.world import Story


def test_runs_end_though_the_broker_dies_under_all(story: Story, workers: Workers, broker: Broker) -> None:
    workers.beat()
    workers.start("--concurrency", "2")
    story.outside.set(hold_after=1, match_operation="refund:order-2051")
    called = story.start("2051")
    decided = story.waiting("2052")
    story.holds("2051")

    with killed(broker):
        story.approve(decided)
    broker.flush()
    later = story.start("2053")

    for run, order in ((called, "2051"), (decided, "2052"), (later, "2053")):
        story.reaches(run, State.SUCCEEDED)
        assert story.times(order) == 1
