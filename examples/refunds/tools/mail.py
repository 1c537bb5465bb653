"""Mails a supplier. What was sent cannot be called back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from django.utils.translation import gettext as _
from pydantic import Field

from examples.refunds.tools import answers
from examples.refunds.tools.base import ServiceTool
from runs.tools import Arguments


class MailArguments(Arguments):
    """The whole message, and the order that it is about."""

    order: Annotated[str, Field(min_length=1)]
    to: Annotated[str, Field(min_length=3)]
    subject: Annotated[str, Field(min_length=1)]
    text: str


class MailSupplier(ServiceTool):
    """Sends one message about one order."""

    name = "mail_supplier"
    system = "mail"
    schema = MailArguments
    reversible = False
    record = answers.Message
    shown = ("to", "subject", "text")
    sensitive = frozenset({"to"})

    def path(self, arguments: Mapping[str, Any]) -> str:
        """Where messages go."""
        return "/mail/messages"

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        """One message for each order's refund."""
        return f"mail:order-{arguments['order']}"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        """The order: an address is for those who may see it, and a title is for all."""
        return _("Mail the supplier about order %(order)s") % arguments

    def confirm_phrase(self, arguments: Mapping[str, Any]) -> str:
        """The address."""
        return str(arguments["to"])
