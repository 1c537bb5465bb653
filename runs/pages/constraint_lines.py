"""What became of each constraint of a run, and what a person can do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.rights import Right
from runs.machine import state as s
from runs.machine.constraints import STANDS, Became, SourceNow
from runs.machine.safety import decisions_of
from runs.machine.transitions import Decision
from runs.pages import who
from runs.sources import held

Row = dict[str, Any]


def at_source(state: s.RunState) -> Mapping[int, SourceNow]:
    """What those held here say now, whether or not the run was told; empty where none is. One query."""
    mine = [c for c in state.constraints if c.stands and held.holds(c.term)]
    return held.standing(None, mine, tenant_id=UUID(state.identity.tenant)) if mine else {}


def doing(
    state: s.RunState,
    constraint: s.Constraint,
    now: Mapping[int, SourceNow],
    holders: who.Holders,
    person: User,
) -> Row:
    """The parts of a line that say what became of it and what can be done: note, revoke and accept."""
    return {
        "state_note": note(constraint, now.get(constraint.number, STANDS)),
        **_revoke(state, constraint, holders, person),
        **_accept(state, constraint, holders, person),
    }


def note(constraint: s.Constraint, source: SourceNow) -> str:
    """What became of it; empty where it stands."""
    gone, new = constraint.withdrawn, constraint.amended
    if gone:
        facts = {"by": gone.by.name if gone.by else _("its source"), "seq": gone.seq, "why": gone.why}
        if gone.here:
            return _("Withdrawn for this run alone by %(by)s, event %(seq)d: “%(why)s”") % facts
        said = _("Withdrawn by %(by)s, event %(seq)d.") % facts
        return _("%(said)s “%(why)s”") % {"said": said, "why": gone.why} if gone.why else said
    if new:
        facts = {"text": new.term.text, "version": new.term.source_version}
        return _("Its source says now, in version %(version)s: “%(text)s”") % facts
    if constraint.before:
        return _("It said before: “%(text)s”") % {"text": constraint.before.text}
    return _untold(source)


def _untold(source: SourceNow) -> str:
    facts = {"by": source.by.name if source.by else _("its source")}
    if source.became is Became.WITHDRAWN:
        return _("Withdrawn by %(by)s. Nothing more is sent under it; the run is told in a moment.") % facts
    if source.became is Became.AMENDED:
        return _("Amended by %(by)s. Nothing more is sent under it; the run is told in a moment.") % facts
    return ""


def _revoke(state: s.RunState, constraint: s.Constraint, holders: who.Holders, person: User) -> Row:
    if constraint.withdrawn or state.state in s.TERMINAL or state.cancel_requested or state.undoing:
        return {}
    if person in holders[Right.REVOKE_CONSTRAINTS]:
        return {"revoke_url": reverse("constraint-revoke", args=[state.identity.run, constraint.number])}
    return {"revoke_who": who.why_not(person, Right.REVOKE_CONSTRAINTS, holders[Right.REVOKE_CONSTRAINTS])}


def _accept(state: s.RunState, constraint: s.Constraint, holders: who.Holders, person: User) -> Row:
    if constraint.amended is None or Decision.ACCEPT not in decisions_of(state):
        return {}
    if person not in holders[Right.OPERATE_RUNS]:
        return {}
    return {"accept_url": reverse("constraint-accept", args=[state.identity.run, constraint.number])}
