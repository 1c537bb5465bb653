"""The planner, as code: look the order up, compare, propose refund, the end of the ticket and a mail."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _

from examples.refunds.csvfile import OrderRow
from runs.agents import Assume, Decline, Observed, Plan, Promise, Proposal, Read, Step, View

TELL_WITHIN = timedelta(hours=1)


class RefundPlanner:
    """Proposes what the file asks for where the shop's order agrees with it, and declines otherwise."""

    def propose(self, view: View) -> Proposal:
        """Read the order first; the same view always gives the same proposal."""
        try:
            row = OrderRow(**view.input)
        except TypeError:
            return Decline(reason=_("The input of the run is not a row of the file of orders."))
        if said := (*view.advice, *(asked.text for asked in view.proposed_constraints)):
            # Code cannot be talked into another plan: what people want changed, people have to start anew.
            return Decline(reason=_("This planner cannot follow: %(advice)s") % {"advice": said[-1]})
        order = view.observed("lookup_order", {"order": row.order})
        return _compared(row, order, view) if order else _lookup(row)


def _compared(row: OrderRow, order: Observed, view: View) -> Proposal:
    if order.value is None:
        return Decline(reason=_("The shop does not know the order %(order)s.") % {"order": row.order})
    differences = _differences(row, order.value)
    if differences:
        return Decline(reason=" ".join(differences))
    return _plan(row, view)


def _differences(row: OrderRow, order: Mapping[str, Any]) -> list[str]:
    said = _("The file gives %(column)s as %(file)s, the order as %(order)s.")
    return [
        said % {"column": column, "file": wanted, "order": order[column]}
        for column, wanted in row.as_input().items()
        if column != "order" and order[column] != wanted
    ]


def _lookup(row: OrderRow) -> Read:
    return Read(tool="lookup_order", arguments={"order": row.order})


def _plan(row: OrderRow, view: View) -> Plan:
    refund, mail, close = _refund(row), _mail(row), _close(row)
    done = {effect.step for effect in view.standing}
    # The ticket first: it can be opened again, and a mail cannot be called back.
    steps = (refund, close, mail)
    left = tuple(step for step in steps if step.name not in done)
    tell = Promise(
        text=_("Tell %(supplier)s about the refund for order %(order)s") % row.as_input(),
        after=refund.name,
        by=mail.name,
        due=TELL_WITHIN,
    )
    return Plan(
        steps=left or steps,
        promises=(tell,) if refund in left else (),
        assumptions=(
            Assume(
                text=_("Order %(order)s is %(amount)s %(currency)s to %(supplier)s") % row.as_input(),
                rests_on=(_lookup(row),),
            ),
        ),
        claim=_("The order agrees with the file in every column."),
    )


def _refund(row: OrderRow) -> Step:
    return Step(
        name=f"refund:order-{row.order}",
        tool="refund",
        arguments={
            "order": row.order,
            "supplier": row.supplier,
            "amount": row.amount,
            "currency": row.currency,
        },
        rests_on=(_lookup(row),),
    )


def _mail(row: OrderRow) -> Step:
    # Concrete to the last letter, since people approve it; in English, as the suppliers' contracts are.
    text = (
        f"Dear {row.supplier},\n\n"
        f"we have refunded {row.amount} {row.currency} for your order {row.order}.\n\n"
        "Kind regards\nAccounts payable\n"
    )
    return Step(
        name=f"mail:order-{row.order}",
        tool="mail_supplier",
        arguments={
            "order": row.order,
            "to": row.email,
            "subject": f"Refund for order {row.order}",
            "text": text,
        },
    )


def _close(row: OrderRow) -> Step:
    return Step(name=f"close:ticket-{row.ticket}", tool="close_ticket", arguments={"ticket": row.ticket})
