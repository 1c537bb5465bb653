"""The refund agent: its planner, its tools, and when people must agree. Name it in HANDOFF_AGENTS."""

from __future__ import annotations

from decimal import Decimal

from approvals.policy import ApprovalRule, Party, RulePolicy, Step
from examples.refunds.planner import RefundPlanner
from examples.refunds.tools.mail import MailSupplier
from examples.refunds.tools.orders import LookupOrder
from examples.refunds.tools.payments import RefundSupplier
from examples.refunds.tools.tickets import CloseTicket
from runs.agents import Agent

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
            not_by=frozenset({Party.PRINCIPAL, Party.CREATOR}),
        ),
    ),
)

REFUNDS = Agent(
    name="refunds",
    version="1",
    title="Supplier refunds",
    planner=RefundPlanner(),
    tools=(LookupOrder(), RefundSupplier(), MailSupplier(), CloseTicket()),
    policy=POLICY,
)
