"""What a run owes: opened by a plan, a receipt or a person; discharged by a receipt or an attestation, nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from accounts.models import User
from accounts.rights import Right, grant_right
from runs import actions, agents, recovery
from runs.access import NotPermitted
from runs.clock import database_now
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.decide import ConclusionRefused
from runs.machine.transitions import Refused
from runs.models import Obligation, Run
from runs.tools import Promised
from tests.fixtures.clock import Clock
from tests.outside import Pay, World
from tests.people import House, advance, assert_replays

WAIT, PAY = {"signal": "go"}, {"tool": "pay", "order": "7"}
HOW, PROOF = "I called them and they have it.", "ticket 7"


@pytest.fixture
def keeper(house: House) -> User:
    """Somebody who may state what happened, and operates nothing."""
    grant_right(to=house.second, right=Right.ATTEST_EFFECTS, obj=house.agent, actor=None, now=database_now())
    return house.second


@pytest.fixture
def slips(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bank promises a slip with each payment that it confirms."""

    def promises(self: Pay, arguments: Mapping[str, Any], evidence: Any) -> Sequence[Promised]:
        shown = self.outcome(evidence)
        return (Promised(text=f"post the slip of {shown['order']}", to="the auditor", due=timedelta(days=1)),)

    monkeypatch.setattr(Pay, "promises", promises)


def owe(house: House, run: Run, **more: Any) -> s.RunState:
    actions.open_obligation(
        person=house.operator, run_id=run.pk, text="tell the auditor", to="the auditor", submission=uuid4(),
        **{"owner": house.operator, **more},
    )  # fmt: skip
    return assert_replays(run)


def attest(person: User, run: Run, number: int = 1) -> s.RunState:
    actions.attest_obligation(
        person=person, run_id=run.pk, obligation=number, how=HOW, reference=PROOF, submission=uuid4()
    )
    return assert_replays(run)


def cancelled(house: House, world: World, owner: User | None = None, order: str = "1042") -> Run:
    """A run that paid, could not tell the supplier, and was cancelled."""
    world.answers = ["", "refused"]
    run = house.start(order)
    advance(run)
    actions.cancel_run(person=house.operator, run_id=run.pk, note="", submission=uuid4(), owner=owner)
    assert advance(run).state is s.State.CANCELLED
    return run


def test_a_receipt_that_promises_something_opens_it(house: House, world: World, slips: None) -> None:
    run = house.scripted([PAY])

    state = advance(run)

    (owed,) = state.open_obligations
    assert (owed.text, owed.to, owed.source, owed.effect) == ("post the slip of 7", "the auditor", "tool", 1)
    assert owed.due_at == owed.opened_at + timedelta(days=1)
    assert [r.code for r in state.reasons] == ["obligation_open"]
    row = Obligation.objects.get(run=run)
    assert (row.to_whom, row.due_at, row.owner) == ("the auditor", owed.due_at, "")


def test_what_a_query_finds_promises_the_same(house: House, world: World, slips: None) -> None:
    world.answers = ["lost"]
    run = house.scripted([PAY])

    state = advance(run)

    assert [x.executed for x in (state.effects[1].receipt,) if x] == [True]
    assert world.queries == ["pay:7"]
    assert [(o.text, o.effect) for o in state.open_obligations] == [("post the slip of 7", 1)]


def test_a_tool_that_cannot_read_its_promises_keeps_no_receipt_away(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pay, "promises", lambda self, arguments, evidence: evidence["none"])
    run = house.scripted([PAY])

    state = advance(run)

    assert state.last_confirmed is not None
    assert [o.text for o in state.open_obligations] == [
        "look what pay promised: its evidence could not be read (KeyError)"
    ]


def test_a_run_does_not_succeed_before_what_a_person_wrote_down_is_attested(
    house: House, world: World, keeper: User
) -> None:
    run = house.scripted([WAIT, PAY])
    due = database_now() + timedelta(days=3)
    state = owe(house, run, due_at=due, owner=keeper)
    (owed,) = state.open_obligations
    assert (owed.owner and owed.owner.id, owed.due_at, owed.source) == (str(keeper.pk), due, "person")
    house.answer(run, "go")

    stopped = advance(run)

    assert [r.code for r in stopped.reasons] == ["obligation_open"]
    after = attest(keeper, run)
    assert after.obligations[0].attested is not None
    assert after.obligations[0].attested.reference == PROOF
    assert advance(run).state is s.State.SUCCEEDED


def test_the_receipt_of_a_step_discharges_what_a_person_wrote_down(house: House, world: World) -> None:
    run = house.scripted([WAIT, PAY])
    owe(house, run, by="pay:7")
    house.answer(run, "go")

    state = advance(run)

    assert state.state is s.State.SUCCEEDED
    assert state.effects[1].receipt is not None
    assert state.obligations[0].discharged_seq == state.effects[1].receipt.seq


def test_what_cannot_be_written_down_is_refused(house: House, world: World) -> None:
    run = house.scripted([WAIT, PAY])

    with pytest.raises(ConclusionRefused, match="owner_may_not"):
        owe(house, run, owner=house.viewer)
    with pytest.raises(ConclusionRefused, match="due_over"):
        owe(house, run, due_at=database_now() - timedelta(seconds=1))
    with pytest.raises(Refused):
        owe(house, run, by="no such step")
    house.cancel(run)
    advance(run)
    with pytest.raises(Refused):
        owe(house, run)
    assert assert_replays(run).obligations == ()


def test_who_cancels_keeps_what_is_owed_unless_somebody_else_is_chosen(
    house: House, world: World, keeper: User
) -> None:
    run = cancelled(house, world)
    (owed,) = load(run.pk).open_obligations
    assert owed.handed_over and owed.owner is not None and owed.owner.id == str(house.operator.pk)

    other = cancelled(house, world, owner=keeper, order="1043")

    row = Obligation.objects.get(run=other)
    assert (row.owner, row.owner_name, row.handed_over) == (str(keeper.pk), keeper.shown_name, True)


def test_a_child_hands_what_it_owes_to_whom_its_parent_does(house: House, world: World, keeper: User) -> None:
    part = {"plans": [[WAIT, PAY]]}
    run = house.scripted([{"children": {"one": part}}])
    (child,) = Run.objects.filter(parent=run)
    advance(child)
    owe(house, child, by="pay:7")
    actions.cancel_run(person=house.operator, run_id=run.pk, note="", submission=uuid4(), owner=keeper)
    actions.tell_untold(10)

    state = advance(child)

    assert state.state is s.State.CANCELLED
    assert state.hands_to is not None and state.hands_to.id == str(keeper.pk)
    # Who kept it already goes on keeping it.
    assert [o.owner.id for o in state.open_obligations if o.owner] == [str(house.operator.pk)]


def test_a_closed_run_is_handed_on_and_discharged_by_attestation_alone(
    house: House, world: World, keeper: User
) -> None:
    run = cancelled(house, world)
    with pytest.raises(ConclusionRefused, match="same_owner"):
        actions.hand_on_obligation(
            person=house.operator, run_id=run.pk, obligation=1, owner=house.operator, note="", submission=uuid4()
        )  # fmt: skip

    actions.hand_on_obligation(
        person=house.operator, run_id=run.pk, obligation=1, owner=keeper, note="on leave", submission=uuid4()
    )
    assert Obligation.objects.get(run=run).owner == str(keeper.pk)
    with pytest.raises(NotPermitted):
        attest(house.operator, run)
    state = attest(keeper, run)

    assert (state.state, state.open_obligations) == (s.State.CANCELLED, ())
    assert Obligation.objects.get(run=run).discharged_seq == state.seq
    with pytest.raises(Refused):
        attest(keeper, run)


def test_the_same_form_attests_once(house: House, world: World, keeper: User) -> None:
    run, form = cancelled(house, world), uuid4()

    first, second = (
        actions.attest_obligation(
            person=keeper, run_id=run.pk, obligation=1, how=HOW, reference=PROOF, submission=form
        )
        for _ in range(2)
    )

    assert (first.seq, first.repeated, second.seq, second.repeated) == (first.seq, False, first.seq, True)


def test_the_sweep_says_once_that_something_is_overdue(house: House, world: World, clock: Clock) -> None:
    run = house.scripted([WAIT, PAY])
    owe(house, run, due_at=database_now() + timedelta(hours=1))
    recovery.sweep()
    assert assert_replays(run).obligations[0].overdue_seq is None

    clock.move(timedelta(hours=2))
    recovery.sweep()
    recovery.sweep()

    (said,) = [r for r in log(run.pk) if isinstance(r.event, e.ObligationOverdue)]
    assert said.actor.kind is e.ActorKind.SYSTEM
    assert assert_replays(run).obligations[0].overdue_seq == said.seq


def test_what_is_overdue_on_a_closed_run_is_said_too(house: House, world: World, clock: Clock) -> None:
    world.answers = ["refused"]
    run = house.start()
    advance(run)
    owe(house, run, due_at=database_now() + timedelta(hours=1))
    house.cancel(run)
    advance(run)
    clock.move(timedelta(hours=2))

    recovery.sweep()

    assert [type(r.event).__name__ for r in log(run.pk)][-1] == "ObligationOverdue"
    assert assert_replays(run).state is s.State.CANCELLED


def test_a_successor_carries_what_is_owed_with_owner_due_time_and_that_it_is_overdue(
    house: House, world: World, clock: Clock
) -> None:
    world.answers = ["refused"]
    run = house.start()
    advance(run)
    due = database_now() + timedelta(hours=1)
    owe(house, run, due_at=due)
    clock.move(timedelta(hours=2))
    recovery.sweep()

    done = actions.restart_run(person=house.operator, run_id=run.pk, note="", submission=uuid4())
    recovery.sweep()

    successor = Run.objects.get(pk=done.run)
    (owed,) = load(done.run).open_obligations
    assert (owed.text, owed.to, owed.due_at, owed.source) == (
        "tell the auditor", "the auditor", due, "person"
    )  # fmt: skip
    assert owed.owner is not None and owed.owner.id == str(house.operator.pk)
    assert (owed.overdue_seq, owed.overdue(database_now())) == (1, True)
    assert assert_replays(successor).seq == 1
    # The run before keeps nothing: what it owed is its successor's now.
    grant_right(
        to=house.operator, right=Right.ATTEST_EFFECTS, obj=house.agent, actor=None, now=database_now()
    )
    with pytest.raises(Refused):
        attest(house.operator, run)
    assert attest(house.operator, successor).open_obligations == ()


def test_what_a_person_concludes_to_have_happened_promises_the_same(
    house: House, world: World, slips: None, clock: Clock
) -> None:
    world.answers, world.outage = ["lost"], "the bank is closed"
    run = house.scripted([PAY])
    clock.move(timedelta(minutes=1))
    effect, world.outage = advance(run).effects[1], ""
    tool = agents.registered()["payer", "1"].writing("pay")
    answer, evidence, _found = recovery.ask(effect, tool)
    asked = actions.record_answer(
        person=house.operator, run_id=run.pk, effect=1, answer=answer, evidence=evidence, submission=uuid4()
    )

    actions.conclude_effect(
        person=house.operator, run_id=run.pk, effect=1, happened=True, asked=asked.seq, note="seen", submission=uuid4()
    )  # fmt: skip

    (owed,) = assert_replays(run).open_obligations
    assert (owed.text, owed.effect, owed.source) == ("post the slip of 7", 1, "tool")
