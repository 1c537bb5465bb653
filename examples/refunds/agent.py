"""The refund agent: its planner, its tools, and when people must agree. Name it in HANDOFF_AGENTS."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from approvals.documents import policy_of
from examples.refunds.planner import RefundPlanner
from examples.refunds.tools.mail import MailSupplier
from examples.refunds.tools.orders import LookupOrder
from examples.refunds.tools.payments import RefundSupplier
from examples.refunds.tools.tickets import CloseTicket, ReopenTicket
from runs.agents import Agent, Constraint

APPROVAL_FROM = Decimal("100.00")  #: as the policy has it
#: A document, as tenants write their own: /policies/refunds/ shows it, and another version begins with it.
POLICY = policy_of((Path(__file__).parent / "policy.json").read_text(encoding="utf-8"), version="refunds/1")

SOURCE = {"source_kind": "configuration", "source_ref": "examples.refunds.agent", "source_version": "1"}
CONSTRAINTS = (
    Constraint(name="once", text="No order is refunded twice.", **SOURCE),
    Constraint(
        name="as ordered",
        text="A refund is exactly what the order says, and goes to the order's supplier.",
        **SOURCE,
    ),
    Constraint(
        name="at most 10,000",
        text="A refund is at most 10,000 of its currency.",
        predicate="tool != 'refund' || money(arguments.amount) <= money('10000.00')",
        **SOURCE,
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
    sensitive=frozenset({"email"}),
)
