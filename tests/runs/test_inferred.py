"""Constraints that the agent read in a document: they bind at once, and a person may confirm them."""

from __future__ import annotations

from uuid import uuid4

import pytest

from approvals.models import Verdict
from runs import actions
from runs.agents import Infer
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine.state import State
from runs.machine.transitions import Refused
from runs.models import Run
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.scripted import LOOK, Script, pay, plan

SMALL = Infer(text="The contract allows 60 EUR.", read=LOOK, predicate='cost <= money("60.00")')


def read(view: object) -> object:
    return LOOK


def waiting(house: House, script: Script, *infers: Infer) -> Run:
    """A run that read its order, inferred these from it, and waits for approval."""
    script.needed = 1
    script.proposals = [read, plan(pay(), infers=infers)]
    run = house.start()
    assert advance(run).state is State.WAITING_APPROVAL
    return run


def confirm(house: House, run: Run, number: int = 1) -> None:
    actions.confirm_constraint(
        person=house.operator, run_id=run.pk, number=number, note="It stands in § 4.", submission=uuid4()
    )


def test_what_was_read_binds_at_once_and_names_where(house: House, script: Script, world: World) -> None:
    run = waiting(house, script, SMALL)

    (found,) = load(run.pk).constraints

    assert (found.term.text, found.term.predicate, found.term.source_kind) == (
        SMALL.text,
        SMALL.predicate,
        "inferred",
    )
    assert (found.observed, found.unconfirmed, found.term.source_version) == (1, True, "v1")
    state = load(run.pk)
    assert state.plan is not None and state.plan.voided_seq is None
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED


def test_a_plan_has_to_keep_what_was_inferred_with_it(house: House, script: Script, world: World) -> None:
    script.proposals = [read, plan(pay(amount="61.00"), infers=(SMALL,)), plan(pay())]
    run = house.start()

    state = advance(run)

    kinds = [type(x.event).__name__ for x in log(run.pk)]
    assert kinds.index("ConstraintAccepted") < kinds.index("ProposalRefused") < kinds.index("PlanProposed")
    refused = next(x.event for x in log(run.pk) if isinstance(x.event, e.ProposalRefused))
    assert [b.constraint for b in refused.broken] == [1]
    assert [a["amount"] for _, _, a in world.executed] == ["50.00"] and len(state.constraints) == 1
    assert [(a.source, a.confirmed) for a in script.views[-1].accepted] == [("inferred", False)]


@pytest.mark.parametrize("wrong, why", [
    (Infer(text=" ", read=LOOK), "its text has from 1"),
    (Infer(text="x" * 2001, read=LOOK), "its text has from 1"),
    (Infer(text="x", read=LOOK, predicate="cost <"), "its predicate cannot be evaluated"),
    (Infer(text="x", read=type(LOOK)(tool="look_up", arguments={"order": "8"})), "was not read"),
])  # fmt: skip
def test_what_cannot_be_one_is_refused(
    house: House, script: Script, world: World, wrong: Infer, why: str
) -> None:
    script.proposals = [read, plan(pay(), infers=(wrong,)), plan(pay())]
    run = house.start()
    state = advance(run)
    refused = next(x.event for x in log(run.pk) if isinstance(x.event, e.ProposalRefused))
    assert why in refused.problems[0] and not state.constraints


def test_what_is_known_is_not_inferred_again(house: House, script: Script, world: World) -> None:
    script.proposals = [
        read,
        plan(pay(), infers=(SMALL, SMALL), more=True),
        plan(pay("pay:8", order="8"), infers=(SMALL,)),
    ]
    state = advance(house.start())
    assert state.state is State.SUCCEEDED and len(state.constraints) == 1


def test_a_person_confirms_it_once_and_a_successor_knows_that(
    house: House, script: Script, world: World
) -> None:
    run = waiting(house, script, SMALL)

    confirm(house, run)

    state = assert_replays(run)
    (found,) = state.constraints
    assert found.confirmed is not None and not found.unconfirmed
    assert (found.confirmed.by.name, found.term.source_kind) == (house.operator.shown_name, "inferred")
    assert state.state is State.WAITING_APPROVAL and state.plan is not None and state.plan.voided_seq is None
    with pytest.raises(Refused):
        confirm(house, run)
    with pytest.raises(LookupError):
        confirm(house, run, 2)
    house.decide(run, house.approver, verdict=Verdict.REJECT)
    done = actions.restart_run(person=house.operator, run_id=run.pk, note="Anew.", submission=uuid4())
    (taken,) = load(done.run).constraints
    assert taken.confirmed == found.confirmed
