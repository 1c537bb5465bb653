"""Constraints that are held here: new runs accept what stands, and from the commit that ends it nothing rests on it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, transaction

from approvals.outcomes import StaleError
from runs import actions, engine
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import EffectStatus, RequestStatus, State
from runs.models import Agent, Constraint, Run, Statement
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance
from tests.runs.test_evidence import kinds
from tests.runs.test_planning import codes
from tests.runs.test_sends import _first

REF = "held/ONE"


def say(
    house: House, text: str = "Pay by day.", *, ref: str = REF, version: int = 1, **more: Any
) -> Statement:
    """One version of a constraint, as the row that holds it."""
    fields: dict[str, Any] = {
        "tenant": house.tenant, "kind": "policy", "ref": ref, "version": version, "name": f"limit {ref}", "text": text,
        "by": house.viewer, "reason": "as agreed", "at": database_now(),
    }  # fmt: skip
    return Statement.objects.create(**(fields | more))


def withdraw(house: House, *, ref: str = REF, version: int = 2, **more: Any) -> Statement:
    return say(house, ref=ref, version=version, withdrawn=True, reason="not needed any more", **more)


def texts(run: Run) -> list[str]:
    return [c.term.text for c in load(run.pk).constraints if c.term.source_ref.startswith("held/")]


def test_a_new_run_accepts_what_stands_for_its_agent_and_for_all(house: House, world: World) -> None:
    other = Agent.objects.create(tenant=house.tenant, name="other", title="Other")
    first = house.start()
    say(house, "For all.", ref="held/ALL", predicate="tool != 'letter'")
    say(house, "For this one.", ref="held/MINE", agent=house.agent)
    say(house, "For another.", ref="held/OTHER", agent=other)
    say(house, "For one run.", ref="held/RUN", run=first)
    say(house, "Gone.", ref="held/GONE")
    withdraw(house, ref="held/GONE")
    say(house, "First.", ref="held/TWICE")
    say(house, "Second.", ref="held/TWICE", version=2)

    run = house.start()

    assert (texts(first), texts(run)) == ([], ["For all.", "For this one.", "Second."])
    (row,) = Constraint.objects.filter(run=run, source_ref="held/ALL")
    assert (row.name, row.predicate, row.source_version) == ("limit held/ALL", "tool != 'letter'", "1")
    state = advance(run)
    assert (state.state, state.reasons) == (State.SUCCEEDED, ())


@pytest.mark.parametrize(
    "more",
    [{"version": 3}, {"version": 1}, {"version": 2, "name": "another"}, {"version": 2, "reason": " "}],
    ids=["a gap", "the same again", "another name", "no reason"],
)
def test_a_version_follows_the_one_before(house: House, more: dict[str, Any]) -> None:
    say(house)
    with pytest.raises(DatabaseError), transaction.atomic():
        say(house, "Pay by night.", **more)


def test_nothing_follows_a_withdrawal_and_no_row_is_changed(house: House) -> None:
    say(house)
    withdraw(house)
    with pytest.raises(DatabaseError, match="does not follow"), transaction.atomic():
        say(house, version=3)
    with pytest.raises(DatabaseError), transaction.atomic():
        Statement.objects.update(text="Pay whenever.")
    with pytest.raises(DatabaseError, match="does not follow"), transaction.atomic():
        withdraw(house, ref="held/NEVER", version=1)


@pytest.mark.parametrize("late", [False, True], ids=["before revalidation", "between revalidation and send"])
@pytest.mark.parametrize("amended", [False, True], ids=["withdrawn", "amended"])
def test_what_changed_at_its_source_stops_the_run_before_it_sends(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch, late: bool, amended: bool
) -> None:
    say(house)
    run = house.approved()

    def change() -> object:
        return say(house, "Pay by night.", version=2) if amended else withdraw(house)

    if late:
        monkeypatch.setattr(engine, "_send", _first(change, engine._send))
    else:
        change()

    state = advance(run)

    assert world.calls == []
    assert codes(state) == ["constraint_amended" if amended else "constraint_withdrawn"]
    held = state.constraints[-1]
    assert (bool(held.withdrawn), bool(held.amended)) == (not amended, amended)
    told = held.withdrawn or held.amended
    assert told and told.by and told.by.name == house.viewer.shown_name
    assert [r.status for r in state.requests] == [RequestStatus.VOIDED]
    assert state.plan and [c.what for c in state.plan.voided][:1] == ["constraints"]
    (row,) = Constraint.objects.filter(run=run, source_ref=REF)
    assert (row.withdrawn_seq is None, row.amended_version) == (amended, "2" if amended else "")


def test_nobody_decides_about_a_plan_whose_constraint_is_gone_though_the_run_was_not_told(
    house: House,
) -> None:
    say(house)
    run = house.waiting()
    withdraw(house)

    with pytest.raises(StaleError) as refused:
        house.decide(run, house.approver)

    assert refused.value.facts == {"constraints.C-2": "Pay by day. -> None"}
    assert load(run.pk).requests[0].status is RequestStatus.PENDING


def test_the_planner_is_not_asked_under_a_constraint_that_is_gone(house: House, world: World) -> None:
    say(house)
    run = house.start()
    withdraw(house)

    state = advance(run)

    assert (codes(state), state.plans) == (["constraint_withdrawn"], ())
    assert kinds(run)[-2:] == ["ConstraintWithdrawn", "HumanNeeded"]


def test_an_open_effect_is_reconciled_first(house: House, world: World, clock: Clock) -> None:
    say(house)
    run = house.start()
    world.answers, world.outage = ["lost"], "503"
    assert advance(run).state is State.UNKNOWN
    withdraw(house)
    world.outage = ""
    clock.move(timedelta(minutes=5))

    state = advance(run)

    assert state.effects[1].status is EffectStatus.CONFIRMED
    assert world.times("pay:1042") == 1
    assert codes(state) == ["constraint_withdrawn"]


def test_a_successor_accepts_what_stands_now(house: House, world: World) -> None:
    for ref in ("held/GONE", "held/AMENDED", "held/STAYS"):
        say(house, f"{ref} first.", ref=ref)
    run = house.approved()
    withdraw(house, ref="held/GONE")
    say(house, "held/AMENDED second.", ref="held/AMENDED", version=2)
    say(house, "New.", ref="held/NEW")
    assert codes(advance(run)) == ["constraint_withdrawn", "constraint_amended"]

    done = actions.restart_run(person=house.operator, run_id=run.pk, note="", submission=uuid4())

    assert texts(Run.objects.get(pk=done.run)) == ["held/AMENDED second.", "held/STAYS first.", "New."]


def test_a_child_accepts_what_stands_for_all_and_what_its_parent_accepted(house: House, world: World) -> None:
    say(house, "For all.", ref="held/ALL")
    run = house.scripted([{"children": {"a": {"plans": [[{"tool": "pay", "order": "1"}]]}}}])
    (child,) = Run.objects.filter(parent=run)
    assert texts(child) == ["For all."]
    withdraw(house, ref="held/ALL")

    assert codes(advance(child)) == ["constraint_withdrawn"]
    assert world.calls == []


def test_what_is_undone_rests_on_no_constraint(house: House, world: World) -> None:
    say(house)
    run = house.scripted([{"tool": "give", "order": "1"}, {"signal": "go"}])
    withdraw(house)
    house.cancel(run, undo=True)

    assert advance(run).state is State.CANCELLED
    assert world.calls == ["give:1", "take_back:1"]
