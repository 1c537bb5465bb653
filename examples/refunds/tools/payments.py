"""Refunds a supplier. Cannot be undone."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from django.utils.translation import gettext as _
from pydantic import Field

from examples.refunds.tools import answers
from examples.refunds.tools.base import ServiceTool
from examples.refunds.tools.orders import resource
from runs.tools import Arguments, Call


class RefundArguments(Arguments):
    """What is paid, to whom and for which order."""

    order: Annotated[str, Field(min_length=1)]
    supplier: Annotated[str, Field(min_length=1)]
    amount: Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,9})\.[0-9]{2}$")]
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]


class RefundSupplier(ServiceTool):
    """Pays, against the version of the order that the plan rests on."""

    name = "refund"
    system = "payments"
    schema = RefundArguments
    reversible = False
    record = answers.Refund
    shown = ("order", "supplier", "amount", "currency")

    def path(self, arguments: Mapping[str, Any]) -> str:
        """Where refunds are made."""
        return "/payments/refunds"

    def headers(self, call: Call) -> dict[str, str]:
        """The order's version too: the service refuses where it has moved."""
        version = call.expects.get(resource(call.arguments["order"]))
        return super().headers(call) | ({"If-Match": f'"{version}"'} if version else {})

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        """One refund for each order."""
        return f"refund:order-{arguments['order']}"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        """Amount, supplier and order."""
        return _("Refund %(amount)s %(currency)s to %(supplier)s for order %(order)s") % arguments

    def confirm_phrase(self, arguments: Mapping[str, Any]) -> str:
        """Amount and order: a supplier's name may be hard to type."""
        return f"{arguments['amount']} {arguments['order']}"

    def cost(self, arguments: Mapping[str, Any]) -> Decimal:
        """The amount."""
        return Decimal(arguments["amount"])
