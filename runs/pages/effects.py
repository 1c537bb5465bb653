"""The effects ledger: sent ones from the log, planned ones from the plan, in the order in which they matter."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.rights import Right
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.events import Inherited
from runs.pages import late, stated, undo, words
from runs.pages.values import flat

Row = dict[str, Any]
Times = Mapping[int, datetime]  #: seq of an event -> its time
_ORDER = ("unknown", "in_flight", "planned", "confirmed", "compensated", "not_executed")


def rows(
    state: s.RunState, mine: frozenset[Right], times: Times, *, seen: Container[str] = frozenset()
) -> list[Row]:
    """The `effects` of parts/effects.html: unknown first, then in flight, planned, confirmed (newest first).

    `seen` has the other runs that the reader may see: only those are linked to.
    """
    sent = [
        row(state, effect, mine, times) | _undoing(state, effect, seen) for effect in state.effects.values()
    ]
    planned = [] if state.state in s.TERMINAL else _planned(state, seen)
    sent += [_inherited(done, -place) for place, done in enumerate(state.inherited, 1)]
    order = {name: place for place, name in enumerate(_ORDER)}
    return sorted([*sent, *planned], key=lambda r: (order[r["state"]], -r["number"], r["id"]))


def summary(found: list[Row]) -> str:
    """How many there are of each kind."""
    count = {name: sum(r["state"] == name for r in found) for name in _ORDER}
    text = (
        _("%(unknown)d unknown · %(in_flight)d in flight · %(planned)d planned · %(confirmed)d confirmed")
        % count
    )
    if not count["compensated"]:
        return text
    return _("%(counts)s · %(number)d undone") % {"counts": text, "number": count["compensated"]}


def _undoing(state: s.RunState, effect: s.Effect, seen: Container[str]) -> Row:
    """What the effect undoes, and what undid it."""
    found: Row = {}
    if effect.undoes:
        found["undoes"] = _other(state, effect.undoes, seen)
    if effect.compensated_by:
        found["undone_by"] = _other(state, effect.compensated_by, seen)
    return found


def _other(state: s.RunState, other: s.Undoes, seen: Container[str]) -> Row:
    """An effect here or in another run, with its address where the reader may see it."""
    place = f"#effect-E-{other.effect}"
    if other.run != state.identity.run:
        place = f"{reverse('run', args=[other.run])}{place}" if other.run in seen else ""
    return {"text": undo.effect_of(state, other), "url": place}


def row(state: s.RunState, effect: s.Effect, mine: frozenset[Right], times: Times) -> Row:
    """One effect with its intent, sends and receipt. Only the mark of a blind tool tells when a call began."""
    run = state.identity.run
    is_open = effect.status in s.OPEN_EFFECT
    found = {
        "id": f"E-{effect.number}",
        "number": effect.number,
        "title": effect.title,
        "system": effect.system,
        "account": effect.account,
        "operation_id": effect.operation_id,
        "key": effect.key,
        "round": effect.round,
        "reversible": effect.terms.reversible,
        "undo": _("can be undone") if effect.terms.reversible else "",
        "state": effect.status.value,
        "state_note": " ".join(filter(None, (note(effect), evidence_note(effect)))),
        "intent_at": effect.intent_at,
        "sent_at": times.get(effect.dispatched_seq or 0),
        **_settled(effect),
        "intent_seq": effect.intent_seq,
        "request_digest": effect.arguments_digest,
        "arguments": late.of_effect(state, effect),
        "event_url": f"{reverse('run-events', args=[run])}?from={effect.intent_seq}#event-{effect.intent_seq}",
    }
    if is_open and Right.RECONCILE_EFFECTS in mine:
        found["reconcile_url"] = reverse("effect-reconcile", args=[run, effect.number])
    if any(came.contradicts for came in effect.late):
        found["finding_url"] = reverse("effect-finding", args=[run, effect.number])
    return found


def _settled(effect: s.Effect) -> Row:
    """When and with which reference it was settled. What people stated is not called a receipt."""
    receipt = effect.receipt
    if stated.by(effect) and receipt:
        named = {"receipt_ref": receipt.reference, "reference_name": _("reference, as stated")}
        return {"receipt_at": None, "stated_at": receipt.at, **named}
    return {
        "receipt_at": receipt.at if receipt else None,
        "receipt_ref": receipt.reference if receipt else None,
    }


def note(effect: s.Effect) -> str:
    """What is known beside the state: how it was settled, or what has been tried."""
    receipt = effect.receipt
    if said := stated.sentence(effect):
        return said
    if receipt and receipt.by_person:
        return _("Concluded by a person from the other system’s answer.")
    if receipt and receipt.failed:
        return _("Not as ordered: %(problem)s") % {"problem": receipt.failed}
    if receipt and not receipt.executed:
        return receipt.detail
    if effect.status is s.EffectStatus.UNKNOWN:
        return _asked(effect)
    return _("Sent again under the same key.") if len(effect.sends) > 1 else ""


def evidence_note(effect: s.Effect) -> str:
    """That evidence contradicts the record, settled or not: it is never dropped."""
    if came := effect.contradicted:
        return _("Evidence in event %(seq)d contradicts this; nobody has settled it.") % {"seq": came.seq}
    seqs = [str(came.seq) for came in effect.late if came.contradicts]
    if not seqs:
        return ""
    twice = any(came.finding == s.Finding.HAPPENED_TWICE for came in effect.late)
    facts = {"events": words.joined(seqs)}
    if twice:
        return _("It happened twice, as people found from the evidence in event %(events)s.") % facts
    return _("Evidence in event %(events)s said otherwise; people settled it.") % facts


def _asked(effect: s.Effect) -> str:
    asks = [ask for ask in effect.asks if ask.seq > effect.last_send.seq]
    if not asks:
        return _("Nobody has asked yet.")
    facts = {"number": len(asks), "at": words.clock(asks[-1].at)}
    if asks[-1].failure is not None:
        return _("Asked %(number)d times, last at %(at)s: no answer.") % facts
    return _("Asked %(number)d times, last at %(at)s.") % facts


def _inherited(done: Inherited, number: int) -> Row:
    """An effect of an earlier run of the lineage, which stands and is never done again."""
    return {
        "id": f"E-{done.effect}",
        "number": number,
        "title": done.title,
        "system": done.system,
        "operation_id": done.operation_id,
        "key": None,
        "reversible": True,
        "state": s.EffectStatus.CONFIRMED.value,
        "state_note": _("Done in %(run)s, before this run began.") % {"run": done.run},
        "intent_at": None,
        "sent_at": None,
        "receipt_at": None,
        "receipt_ref": done.reference,
        "reference_name": _("reference"),
        "arguments": flat(e.text_of(done.arguments)),
        "event_url": "",
    }


def _planned(state: s.RunState, seen: Container[str]) -> list[Row]:
    open_steps = {effect.step for effect in state.open_effects}
    voided = state.plan is None or state.plan.voided_seq is not None or state.outdated
    left = [] if voided else [step for step in state.remaining if step.name not in open_steps]
    steps = [step for step in left if step.wait is None]
    return [_planned_row(state, step, -place, seen) for place, step in enumerate(steps, 1)]


def _planned_row(state: s.RunState, step: s.PlanStep, number: int, seen: Container[str]) -> Row:
    undoes = {"undoes": _other(state, step.undoes, seen)} if step.undoes else {}
    return {
        **undoes,
        "id": "–",
        "number": number,
        "title": step.title,
        "system": step.system,
        "operation_id": step.operation_id,
        "key": None,
        "reversible": step.reversible,
        "undo": _("can be undone") if step.reversible else "",
        "state": "planned",
        "intent_at": None,
        "sent_at": None,
        "receipt_at": None,
        "receipt_ref": None,
        "arguments": late.arguments(step),
    }
