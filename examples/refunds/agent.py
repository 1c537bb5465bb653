"""The refund agent: its planner, its tools, and when people must agree. Name it in HANDOFF_AGENTS."""

from __future__ import annotations

from decimal import Decimal

from approvals.policy import ApprovalRule, Party, RulePolicy, Step
from examples.refunds.planner import RefundPlanner
from examples.refunds.tools.mail import MailSupplier
from examples.refunds.tools.orders import LookupOrder
from examples.refunds.tools.payments import RefundSupplier
from examples.refunds.tools.tickets import CloseTicket, ReopenTicket
from runs.agents import Agent, Constraint

APPROVAL_FROM = Decimal("100.00")


def needs_approval(step: Step) -> bool:
    """A refund from 100 EUR up, and every refund in another currency."""
    if step.tool != RefundSupplier.name:
        return False
    small = step.cost is not None and step.cost < APPROVAL_FROM
    return not (small and step.arguments["currency"] == "EUR")


POLICY = RulePolicy(
    version="refunds/1",
    rules=(
        ApprovalRule(
            name="refund from 100 EUR up",
            applies=needs_approval,
            not_by=frozenset({Party.PRINCIPAL, Party.CREATOR, Party.GOAL_REVISER}),
        ),
    ),
)

CONSTRAINTS = (
    Constraint(
        text="No order is refunded twice.",
        source_kind="configuration",
        source_ref="examples.refunds.agent",
        source_version="1",
    ),
    Constraint(
        text="A refund is exactly what the order says, and goes to the order's supplier.",
        source_kind="configuration",
        source_ref="examples.refunds.agent",
        source_version="1",
    ),
)

REFUNDS = Agent(
    name="refunds",
    version="1",
    title="Supplier refunds",
    planner=RefundPlanner(),
    tools=(LookupOrder(), RefundSupplier(), MailSupplier(), CloseTicket(), ReopenTicket()),
    policy=POLICY,
    constraints=CONSTRAINTS,
)
