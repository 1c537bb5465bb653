"""Accepting for a run what the source of a constraint states now: both texts, and what follows."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from accounts.rights import Right
from runs.machine import state as s
from runs.machine.constraints import term_digest
from runs.machine.safety import decisions_of
from runs.machine.transitions import Decision
from runs.models import Run
from runs.pages import next_action, revoking, words
from runs.pages.run_page import Reader, heading
from runs.pages.stopping import may
from runs.pages.word_diff import word_diff

Context = dict[str, Any]


def context(run: Run, state: s.RunState, constraint: s.Constraint, reader: Reader) -> Context:
    """All of runs/accept.html but what a sent form adds."""
    new = constraint.amended
    return {
        "run": heading(run, state),
        "id": revoking.name_of(constraint),
        "name": constraint.term.name,
        "over": _over(state, constraint),
        "diff": word_diff(constraint.term.text, new.term.text) if new else (),
        "old": _term(constraint),
        "new": _said(new) if new else {},
        "changed_by": _changed_by(new) if new else "",
        "why": new.why if new else "",
        "term": term_digest(new.term) if new else "",
        **may("may_accept", Right.OPERATE_RUNS, reader),
        "values": {},
        "errors": [],
    }  # fmt: skip


def link(state: s.RunState) -> Context | None:
    """The decision as it stands on other pages; None where nothing waits to be accepted."""
    if state.state is not s.State.NEEDS_HUMAN or Decision.ACCEPT not in decisions_of(state):
        return None
    name, does = words.DECISIONS[Decision.ACCEPT.value]
    return {"title": name, "text": does, "url": next_action.accept_address(state)}


def _said(new: s.Amended) -> Context:
    return {"predicate": new.term.predicate, "text": new.term.text, "version": new.term.source_version}


def _term(constraint: s.Constraint) -> Context:
    term = constraint.term
    kind = str(words.SOURCES.get(term.source_kind, term.source_kind))
    return {
        "predicate": term.predicate, "text": term.text, "version": term.source_version, "kind": kind,
        "source": term.source_ref, "at": constraint.at,
    }  # fmt: skip


def _changed_by(new: s.Amended) -> str:
    return new.by.name if new.by else _("its source")


def _over(state: s.RunState, constraint: s.Constraint) -> str:
    """Why there is nothing to accept now; empty where there is."""
    if constraint.withdrawn:
        return _(
            "The constraint was withdrawn: there is no text of it to accept. Restart the run, or cancel it."
        )
    if constraint.amended is None:
        return _("The run accepted what this constraint says: nothing waits to be accepted.")
    if Decision.ACCEPT not in decisions_of(state):
        return _("First the run’s other reasons have to be settled, as its page says.")
    return ""
