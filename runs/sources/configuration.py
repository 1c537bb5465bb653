"""Constraints of the orchestrator's configuration: documents outside, by what was last heard of each.

Nothing is asked here, since that happens outside every transaction (`runs.configuration.ask`). What was heard counts
for the document's half-life; after that its source cannot say anything, and no run that accepted any of it goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from runs import configuration
from runs.agents import Agent, configurations
from runs.clock import database_now
from runs.configuration import DocumentRefused, Stated
from runs.machine import state as s
from runs.machine.constraints import STANDS, Became, SourceNow
from runs.machine.events import RunStarted, Term
from runs.machine.transitions import Refused
from runs.models import ConfigurationKept

KIND: Final = "orchestrator"


class SourceUnknown(Refused):
    """A document of constraints was never heard: what a run would have to accept is not known. Nothing was started."""

    def __init__(self, ref: str, why: str) -> None:
        self.ref, self.why = ref, why
        super().__init__(None, RunStarted.__name__)

    def __str__(self) -> str:
        facts = {"ref": self.ref, "why": self.why}
        return (
            _(
                "What limits the agent’s runs is stated at %(ref)s, which could not be asked: %(why)s "
                "Nothing was started. Try again once it answers."
            )
            % facts
        )


def terms(agent: Agent, *, tenant_id: UUID) -> tuple[Term, ...]:
    """What its documents stated last, the same for every tenant. Raises SourceUnknown where one was never heard."""
    return tuple(term for x in configurations(agent) for term in _stated(x.ref))


def _stated(ref: str) -> list[Term]:
    row = configuration.last(ref)
    if row is None or row.asked_at is None:
        raise SourceUnknown(ref, row.failure if row else _("It was not asked yet."))
    try:
        return [_term(row, x) for x in configuration.document_of(row).constraints]
    except DocumentRefused as error:
        raise SourceUnknown(ref, str(error)) from error


def _term(row: ConfigurationKept, stated: Stated) -> Term:
    return Term(
        text=stated.text, source_kind=KIND, source_ref=row.ref, source_version=row.version, name=stated.name,
        predicate=stated.predicate,
    )  # fmt: skip


def standing(
    agent: Agent | None, constraints: Iterable[s.Constraint], *, tenant_id: UUID
) -> dict[int, SourceNow]:
    """Against what was last heard. The document's version may be another: what it says of the constraint counts."""
    accepted, now = list(constraints), database_now()
    rows = ConfigurationKept.objects.in_bulk({c.term.source_ref for c in accepted})
    return {c.number: _became(c.term, rows.get(c.term.source_ref), now) for c in accepted}


def _became(accepted: Term, row: ConfigurationKept | None, now: datetime) -> SourceNow:
    if row is None or row.good_until is None or row.good_until <= now:
        return SourceNow(became=Became.UNREACHABLE, why=_unheard(row))
    return _says(accepted, row)


def _says(accepted: Term, row: ConfigurationKept) -> SourceNow:
    """What the document says of the constraint, however long ago it was heard."""
    try:
        stated = {x.name: x for x in configuration.document_of(row).constraints}.get(accepted.name)
    except DocumentRefused as error:
        return SourceNow(became=Became.UNREACHABLE, why=str(error))
    if stated is None:
        return SourceNow(
            became=Became.WITHDRAWN, why=_("%(ref)s does not state it any more.") % {"ref": row.ref}
        )
    if (stated.text, stated.predicate) == (accepted.text, accepted.predicate):
        return STANDS
    return SourceNow(became=Became.AMENDED, term=_term(row, stated))


def _unheard(row: ConfigurationKept | None) -> str:
    """Why nobody can say what the source states now."""
    if row is None or row.asked_at is None:
        return _("The source could not be asked: %(why)s") % {
            "why": row.failure if row else _("nobody asks it here.")
        }
    facts = {
        "at": row.asked_at.isoformat(timespec="seconds"),
        "why": row.failure or _("nobody asked it since."),
    }
    return _("The source could not be asked since %(at)s: %(why)s") % facts


def relied(state: s.RunState) -> dict[str, str] | None:
    """Source -> digest of the document that a send rests on; no digest where it does not say what was accepted. None
    where the run accepted nothing of a document, and while it is undone. That the answer still counts the send asks.
    """
    mine = [c.term for c in state.constraints if c.term.source_kind == KIND and not c.withdrawn]
    if not mine or state.undoing:
        return None
    rows = ConfigurationKept.objects.in_bulk({term.source_ref for term in mine})
    found = {ref: row.digest for ref, row in rows.items()}
    for term in mine:
        row = rows.get(term.source_ref)
        if row is None or _says(term, row) != STANDS:
            found[term.source_ref] = ""
    return found
