"""Closes a ticket, and opens it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from django.utils.translation import gettext as _
from pydantic import Field

from examples.refunds.tools import answers
from examples.refunds.tools.base import ServiceTool
from examples.refunds.tools.wire import Ask, NoAnswer, Reply
from runs.tools import Arguments, Call


class TicketArguments(Arguments):
    """Which ticket."""

    ticket: Annotated[str, Field(min_length=1)]


class TicketTool(ServiceTool):
    """Does one thing to a ticket; the ticket itself says what was done to it."""

    system = "tickets"
    schema = TicketArguments
    reversible = True
    shown = ("ticket",)

    verb: ClassVar[str]  #: the last part of the path of a call
    part: ClassVar[str]  #: where the answer about a ticket has the record

    def path(self, arguments: Mapping[str, Any]) -> str:
        """Where it is done to this ticket."""
        return f"{_ticket_path(arguments)}/{self.verb}"

    def body(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Nothing: the path names the ticket."""
        return {}

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        """Once for each ticket."""
        return f"{self.verb}:ticket-{arguments['ticket']}"

    def confirm_phrase(self, arguments: Mapping[str, Any]) -> str:
        """The ticket."""
        return str(arguments["ticket"])

    def question(self, call: Call) -> Ask:
        """The ticket itself."""
        return Ask(method="GET", path=_ticket_path(call.arguments), timeout=call.timeout)

    def records(self, reply: Reply) -> tuple[list[answers.Record], Any]:
        """What was done to the ticket, if it was."""
        if not reply.ok:
            raise NoAnswer(_("The service refuses the question."), reply.evidence())
        said, evidence = reply.read(answers.Ticket)
        found = getattr(said, self.part)
        return ([found] if found else []), evidence

    def evidenced(self, evidence: Any) -> list[answers.Record]:
        """The record, whether a call or a question brought it."""
        return super().evidenced(
            evidence.get(self.part, evidence) if isinstance(evidence, dict) else evidence
        )


class CloseTicket(TicketTool):
    """Closes a ticket once."""

    name = "close_ticket"
    verb = "close"
    part = "closure"
    record = answers.Closure
    compensation = "reopen_ticket"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        """The ticket."""
        return _("Close ticket %(ticket)s") % arguments

    def undo_arguments(self, arguments: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
        """The same ticket."""
        return arguments


class ReopenTicket(TicketTool):
    """Opens a closed ticket again: undoes `close_ticket`, and is planned for nothing else."""

    name = "reopen_ticket"
    verb = "reopen"
    part = "reopening"
    record = answers.Reopening

    def describe(self, arguments: Mapping[str, Any]) -> str:
        """The ticket."""
        return _("Open ticket %(ticket)s again") % arguments


def _ticket_path(arguments: Mapping[str, Any]) -> str:
    return f"/tickets/{quote(arguments['ticket'], safe='')}"
