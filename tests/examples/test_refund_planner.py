"""The planner proposes what the file and the shop agree on, and its policy asks people from 100 EUR up."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from approvals.policy import Party
from approvals.policy import Step as PolicyStep
from examples.refunds.agent import POLICY, REFUNDS
from examples.refunds.planner import RefundPlanner
from runs.agents import Decline, Done, Observed, Plan, Read, Step, View

ROW = {
    "order": "1042",
    "supplier": "Nord GmbH",
    "email": "pay@nord.example",
    "amount": "120.00",
    "currency": "EUR",
    "ticket": "T-1",
}
ORDER = {"id": "1042", "version": 1, **{name: value for name, value in ROW.items() if name != "order"}}


def a_view(**changes: Any) -> View:
    """What the planner is shown before it has read anything."""
    view = View(
        run="run_1",
        goal="Refund it.",
        input=ROW,
        constraints=(),
        observations=(),
        standing=(),
        advice=(),
        voided=None,
        next_version=1,
    )
    return replace(view, **changes)


def seen(value: Any = ORDER) -> tuple[Observed, ...]:
    """The order, observed."""
    return (
        Observed(
            tool="lookup_order",
            arguments={"order": "1042"},
            value=value,
            resource="order:1042",
            version="1",
            observed_at=datetime(2026, 1, 1, tzinfo=UTC),
        ),
    )


def a_plan(view: View) -> Plan:
    """The plan that is proposed."""
    proposal = RefundPlanner().propose(view)
    assert isinstance(proposal, Plan)
    return proposal


def steps_of(plan: Plan) -> tuple[Step, ...]:
    """Its steps, none of which waits."""
    steps = tuple(x for x in plan.steps if isinstance(x, Step))
    assert steps == plan.steps
    return steps


def test_it_reads_first() -> None:
    assert RefundPlanner().propose(a_view()) == Read(tool="lookup_order", arguments={"order": "1042"})


def test_it_plans_three_steps_that_its_tools_accept() -> None:
    plan = a_plan(a_view(observations=seen()))
    assert [step.name for step in steps_of(plan)] == [
        "refund:order-1042",
        "close:ticket-T-1",
        "mail:order-1042",
    ]
    for step in steps_of(plan):
        tool = REFUNDS.writing(step.tool)
        assert tool.validate(step.arguments) == step.arguments
        assert tool.operation_id(step.arguments) == step.name
        assert tool.describe(step.arguments)
        assert tool.confirm_phrase(step.arguments)


def test_the_refund_rests_on_the_order_that_was_read() -> None:
    refund, *_ = steps_of(a_plan(a_view(observations=seen())))
    assert refund.rests_on == (Read(tool="lookup_order", arguments={"order": "1042"}),)


def test_it_promises_to_tell_the_supplier_and_the_mail_keeps_the_promise() -> None:
    plan = a_plan(a_view(observations=seen()))
    (promise,) = plan.promises
    assert (promise.after, promise.by) == ("refund:order-1042", "mail:order-1042")
    assert {promise.after, promise.by} <= {step.name for step in plan.steps}


def test_the_same_view_gives_the_same_plan() -> None:
    assert a_plan(a_view(observations=seen())) == a_plan(a_view(observations=seen()))


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (None, "does not know the order 1042"),
        (ORDER | {"amount": "119.00"}, "gives amount as 120.00, the order as 119.00"),
        (ORDER | {"supplier": "Nord AG"}, "gives supplier as Nord GmbH"),
        (ORDER | {"currency": "USD"}, "gives currency as EUR"),
        (ORDER | {"email": "x@evil.example"}, "gives email as pay@nord.example"),
    ],
)
def test_it_declines_what_does_not_agree(order: Any, words: str) -> None:
    proposal = RefundPlanner().propose(a_view(observations=seen(order)))
    assert isinstance(proposal, Decline)
    assert words in proposal.reason


@pytest.mark.parametrize("row", [{}, {"order": "1042"}, ROW | {"note": "x"}])
def test_it_declines_an_input_that_is_no_row(row: dict[str, str]) -> None:
    assert isinstance(RefundPlanner().propose(a_view(input=row)), Decline)


def test_it_declines_what_people_want_changed() -> None:
    proposal = RefundPlanner().propose(a_view(observations=seen(), advice=("Half of it, please",)))
    assert isinstance(proposal, Decline)
    assert "Half of it, please" in proposal.reason


def test_what_stands_is_not_planned_again() -> None:
    refund, *_ = steps_of(a_plan(a_view(observations=seen())))
    done = Done(
        step=refund.name,
        tool=refund.tool,
        operation_id=refund.name,
        arguments=refund.arguments,
        reference="rf_1",
    )
    plan = a_plan(a_view(observations=seen(), standing=(done,)))
    assert [step.tool for step in steps_of(plan)] == ["close_ticket", "mail_supplier"]
    assert plan.promises == ()


@pytest.mark.parametrize(
    ("tool", "cost", "currency", "needed"),
    [
        ("refund", "99.99", "EUR", 0),
        ("refund", "100.00", "EUR", 1),
        ("refund", "1.00", "CNY", 1),
        ("refund", None, "EUR", 1),
        ("mail_supplier", None, "EUR", 0),
    ],
)
def test_people_agree_from_a_hundred_euro_up(tool: str, cost: str | None, currency: str, needed: int) -> None:
    step = PolicyStep(
        tool=tool,
        arguments={"currency": currency},
        cost=Decimal(cost) if cost else None,
        reversible=False,
    )
    asked = POLICY.evaluate([step])
    assert asked.needed == needed
    assert (Party.CREATOR in asked.not_by) == bool(needed)
