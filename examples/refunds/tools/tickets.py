"""Closes a ticket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

from django.utils.translation import gettext as _
from pydantic import Field

from examples.refunds.tools import answers
from examples.refunds.tools.base import ServiceTool
from examples.refunds.tools.wire import Ask, NoAnswer, Reply
from runs.tools import Arguments, Call


class CloseArguments(Arguments):
    """Which ticket."""

    ticket: Annotated[str, Field(min_length=1)]


class CloseTicket(ServiceTool):
    """Closes a ticket once. A person can open it again in the ticket system."""

    name = "close_ticket"
    system = "tickets"
    schema = CloseArguments
    reversible = True
    record = answers.Closure
    shown = ("ticket",)

    def path(self, arguments: Mapping[str, Any]) -> str:
        """Where this ticket is closed."""
        return f"{_ticket_path(arguments)}/close"

    def body(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Nothing: the path names the ticket."""
        return {}

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        """One end for each ticket."""
        return f"close:ticket-{arguments['ticket']}"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        """The ticket."""
        return _("Close ticket %(ticket)s") % arguments

    def confirm_phrase(self, arguments: Mapping[str, Any]) -> str:
        """The ticket."""
        return str(arguments["ticket"])

    def question(self, call: Call) -> Ask:
        """The ticket itself says what closed it."""
        return Ask(method="GET", path=_ticket_path(call.arguments), timeout=call.timeout)

    def records(self, reply: Reply) -> tuple[list[answers.Record], Any]:
        """The closure of the ticket, if it is closed."""
        if not reply.ok:
            raise NoAnswer(_("The service refuses the question."), reply.evidence())
        said, evidence = reply.read(answers.Ticket)
        return ([said.closure] if said.closure else []), evidence

    def evidenced(self, evidence: Any) -> list[answers.Record]:
        """The closure, whether a call or a question brought it."""
        return super().evidenced(
            evidence.get("closure", evidence) if isinstance(evidence, dict) else evidence
        )


def _ticket_path(arguments: Mapping[str, Any]) -> str:
    return f"/tickets/{quote(arguments['ticket'], safe='')}"
