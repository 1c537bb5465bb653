"""The story with real workers that are really killed: what was sent once is never sent twice, nothing is lost."""

from __future__ import annotations

from accounts.rights import Right, withdraw_right
from runs import outbox
from runs.clock import database_now
from runs.machine.state import EffectStatus, RequestStatus, RunState, State
from runs.models import Run
from tests.fixtures.brokers import Broker, killed
from tests.fixtures.processes import Workers
from tests.story.world import Story


def test_a_killed_worker_loses_and_duplicates_nothing(story: Story, workers: Workers) -> None:
    workers.beat()
    worker = workers.start("--concurrency", "2")
    waiting = story.waiting("2003")
    executed = held(story, "2001", hold_after=1)
    not_called = held(story, "2002", hold_before=1)

    worker.kill()
    workers.start("--concurrency", "2")
    story.approve(waiting)

    _recovered_by_asking(story, story.reaches(executed, State.SUCCEEDED))
    _sent_again_under_one_key(story, story.reaches(not_called, State.SUCCEEDED))
    assert len(story.reaches(waiting, State.SUCCEEDED).effects[1].sends) == 1
    assert [story.times(order) for order in ("2001", "2002", "2003")] == [1, 1, 1]


def held(story: Story, order: str, **switch: int) -> Run:
    """A run whose refund the service holds."""
    story.outside.set(**switch, match_operation=f"refund:order-{order}")
    run = story.start(order)
    story.holds(order)
    return run


def _recovered_by_asking(story: Story, state: RunState) -> None:
    receipt = state.effects[1].receipt
    assert receipt is not None
    assert (receipt.source, receipt.by_person, len(state.effects[1].sends)) == ("query", False, 1)


def _sent_again_under_one_key(story: Story, state: RunState) -> None:
    assert len(state.effects[1].sends) == 2
    assert story.keys("2002") == {state.effects[1].key}


def test_an_outage_ends_with_a_person_who_asks(story: Story, workers: Workers) -> None:
    workers.beat()
    worker = workers.start()
    story.outside.set(outage=True)
    run = held(story, "2011", hold_after=1)
    worker.kill()
    workers.start()

    stopped = story.reaches(run, State.NEEDS_HUMAN)
    assert [reason.code for reason in stopped.reasons] == ["effect_unknown"]
    refused = story.ask(run)
    assert refused.effects[1].asks[-1].failure
    story.outside.set(outage=False)
    story.ask(run)
    story.conclude(run, happened=True)

    state = story.reaches(run, State.SUCCEEDED)
    receipt = state.effects[1].receipt
    assert receipt is not None
    assert (receipt.by_person, story.times("2011")) == (True, 1)


def test_what_changed_while_no_worker_ran_voids_the_approval(story: Story, workers: Workers) -> None:
    changed, lost = story.waiting("2021"), story.waiting("2022")
    with story.outside.client() as client:
        client.post("/control/orders/2021/touch").raise_for_status()
    story.approve(changed, story.second)
    story.approve(lost)
    withdraw_right(
        to=story.approver, right=Right.APPROVE_PLANS, obj=story.agent, actor=None, now=database_now()
    )
    workers.start()
    workers.beat()

    new = story.reaches(changed, State.WAITING_APPROVAL, plan=2)
    causes = {(c.what, c.subject, c.was, c.now) for c in new.plans[0].voided}
    assert ("resources", "order:2021", "1", "2") in causes
    again = story.reaches(lost, State.WAITING_APPROVAL)
    assert [r.status for r in again.requests[:1]] == [RequestStatus.VOIDED]
    assert [(c.subject, c.now) for c in again.requests[0].causes] == [
        ("Anton Weiss", "right_missing:approve_plans")
    ]
    assert (story.times("2021"), story.times("2022")) == (0, 0)

    story.approve(lost, story.second)
    assert story.reaches(lost, State.SUCCEEDED).effects[1].status is EffectStatus.CONFIRMED


def test_lost_and_repeated_messages_change_nothing(story: Story, workers: Workers, broker: Broker) -> None:
    emptied, decided = story.waiting("2031"), story.waiting("2032")
    story.approve(emptied)
    broker.flush()
    with killed(broker):
        story.approve(decided)
    workers.start()
    workers.start()
    for _ in range(20):
        outbox.wake(run_id=emptied.pk, agent="refunds", version="1")
    workers.beat()

    for run, order in ((emptied, "2031"), (decided, "2032")):
        assert len(story.reaches(run, State.SUCCEEDED).effects[1].sends) == 1
        assert story.times(order) == 1
