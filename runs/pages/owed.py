"""What a run owes as rows: to whom, until when, who keeps it, and what discharged it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.rights import Right
from runs.machine import decide
from runs.machine import state as s
from runs.machine.events import ObligationOpened
from runs.machine.transitions import allows
from runs.pages import stated, words

Row = dict[str, Any]


def rows(
    state: s.RunState, times: Mapping[int, datetime], now: datetime, mine: frozenset[Right]
) -> list[Row]:
    """The `obligations` of parts/obligations.html: overdue first, then open, by when each is due. `times` tells when an
    event was, by its seq.
    """
    said = frozenset(x.receipt.seq for x in state.effects.values() if x.receipt and stated.by(x))
    return [row(state, o, now, mine, said=said, times=times) for o in sorted(state.obligations, key=_order)]


def adding(state: s.RunState, mine: frozenset[Right]) -> Row:
    """Where this person can write down what the run owes; empty where they cannot, or the run is over."""
    may = Right.OPERATE_RUNS in mine and allows(state.state, ObligationOpened)
    return {"owe_url": reverse("obligation-add", args=[state.identity.run])} if may else {}


def _order(owed: s.Obligation) -> tuple[bool, bool, datetime, int]:
    return not owed.open, owed.due_at is None, owed.due_at or owed.opened_at, owed.number


def first_due(state: s.RunState) -> s.Obligation:
    """Of what is owed, what has to be done first."""
    return min(state.open_obligations, key=_order)


def row(
    state: s.RunState,
    owed: s.Obligation,
    now: datetime,
    mine: frozenset[Right],
    *,
    said: frozenset[int] = frozenset(),
    times: Mapping[int, datetime] = MappingProxyType({}),
) -> Row:
    """One obligation. `said` are the seqs of receipts that people stated."""
    events = reverse("run-events", args=[state.identity.run])
    return {
        "id": f"B-{owed.number}",
        "text": owed.text,
        "to": owed.to,
        "due_at": owed.due_at,
        "overdue": owed.overdue(now) and not decide.gone_on(state, owed),
        "opened_at": owed.opened_at,
        "opened_by": _opened_by(owed),
        "owner": owner(state, owed) if owed.open else "",
        "discharged_at": times.get(owed.discharged_seq or 0),
        "state_note": note(state, owed, said),
        "proof": _proof(owed),
        "event_url": f"{events}?from={owed.discharged_seq}#event-{owed.discharged_seq}" if owed.discharged_seq else "",
        **_links(state, owed, mine),
    }  # fmt: skip


def _links(state: s.RunState, owed: s.Obligation, mine: frozenset[Right]) -> Row:
    """Where this person can state that it is done, or hand it on."""
    if decide.owed(state, owed.number) is None:
        return {}
    at = [state.identity.run, owed.number]
    found = {}
    if Right.ATTEST_EFFECTS in mine:
        found["attest_url"] = reverse("obligation-attest", args=at)
    if Right.OPERATE_RUNS in mine:
        found["hand_on_url"] = reverse("obligation-hand-on", args=at)
    return found


def owner(state: s.RunState, owed: s.Obligation) -> str:
    """Who keeps it now."""
    if owed.owner is not None:
        return owed.owner.name
    if owed.handed_over or state.state in s.TERMINAL:
        return _("those who operate the run")
    return _("the run")


def _opened_by(owed: s.Obligation) -> str:
    match owed.source:
        case s.Source.TOOL if owed.effect:
            return _("promised with the receipt of %(effect)s") % {"effect": f"E-{owed.effect}"}
        case s.Source.TOOL:
            return _("promised with a receipt of the run before this one")
        case s.Source.PERSON:
            return _("written down by a person")
        case s.Source.FINDING:
            return _("found by people: it happened twice")
        case _:
            return _("promised by the agent’s plan")


def note(state: s.RunState, owed: s.Obligation, said: frozenset[int] = frozenset()) -> str:
    """What became of it."""
    facts = {"seq": owed.discharged_seq, "step": owed.by}
    if owed.attested:
        return _("discharged by what %(name)s stated, event %(seq)d") % {
            **facts,
            "name": owed.attested.name,
        }
    if owed.discharged_seq in said:
        return _("discharged by what people stated, event %(seq)d") % facts
    if not owed.open:
        return _("discharged by the receipt in event %(seq)d") % facts
    if decide.gone_on(state, owed):
        return _("taken over by %(run)s") % {"run": state.successor}
    if owed.handed_over:
        return _("open, handed to a person when the run was cancelled")
    if owed.by and any(step.name == owed.by for step in state.remaining):
        return (
            _("open; the receipt of step %(step)s discharges it, or a person states that it is done") % facts
        )
    return _("open until a person states that it is done")


def _proof(owed: s.Obligation) -> str:
    """How it was established that it is done."""
    if owed.attested is None:
        return ""
    facts = {"how": words.ended(owed.attested.how), "reference": owed.attested.reference}
    return _("%(how)s Proof: %(reference)s") % facts
