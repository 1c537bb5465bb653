"""The demo's agent is ended after its refund: the ticket is opened again, the refund and the mail stand."""

from __future__ import annotations

from uuid import uuid4

from runs import actions, engine
from runs.ledger import load
from runs.machine import decide
from runs.machine.state import EffectStatus, State
from tests.people import assert_replays
from tests.story.world import Story, until


def test_what_can_be_undone_is_undone_after_what_is_in_doubt_is_settled(story: Story) -> None:
    story.outside.set(drop_after=1, match_path="/mail/", outage=True)
    run = story.start("2051")

    def reaches(state: State) -> None:
        def there() -> bool:
            engine.advance(run.pk)
            return load(run.pk).state is state

        until(there, what=lambda: str(load(run.pk).reasons))

    reaches(State.UNKNOWN)
    actions.cancel_run(
        person=story.operator, run_id=run.pk, note="ordered by mistake", undo=True, submission=uuid4()
    )
    engine.advance(run.pk)
    assert load(run.pk).state is State.UNKNOWN
    story.outside.set(outage=False)
    reaches(State.CANCELLED)

    state = assert_replays(run)
    with story.outside.client() as client:
        assert client.get("/tickets/T-2051").json()["state"] == "open"
    assert [x.tool for x in decide.standing(state)] == ["refund", "mail_supplier"]
    assert state.effects[2].status is EffectStatus.COMPENSATED
    assert story.outside.ledger()["operations"] == {
        "refund:order-2051": 1, "close:ticket-T-2051": 1, "mail:order-2051": 1, "reopen:ticket-T-2051": 1,
    }  # fmt: skip
