"""The reconcile page: what was sent, what the other system answered, which conclusion each answer allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.rights import Right
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.decide import conclusion_conditions
from runs.machine.safety import ours
from runs.models import Run
from runs.pages import effects, stated, words
from runs.pages.run_page import Reader, heading
from runs.pages.values import flat, indented
from runs.pages.who import why_not

Context = dict[str, Any]


def context(
    run: Run,
    log: Sequence[e.Recorded],
    state: s.RunState,
    effect: s.Effect,
    reader: Reader,
    *,
    can_ask: bool,
) -> Context:
    """All of runs/reconcile.html but what a sent form adds."""
    last = latest(effect)
    return {
        "run": heading(run, state),
        "effect": {
            **effects.row(state, effect, reader.mine, {r.seq: r.at for r in log}),
            "last_network": _network(log, effect),
        },
        "settled_at": effect.settled_at,
        "settled": reader.now >= effect.settled_at,
        **_asking(state, effect, reader, can_ask),
        **_answers(run.pk, log, effect),
        **_concluding(state, effect, reader),
        "outcomes": outcomes(effect, last, reader.now),
        "evidence_seq": last.seq if last else "",
        "page_url": reverse("effect-reconcile", args=[run.pk, effect.number]),
        "values": {},
        "errors": [],
    }


def latest(effect: s.Effect) -> s.Ask | None:
    """The answer that a conclusion would cite."""
    return effect.asks[-1] if effect.asks else None


def _network(log: Sequence[e.Recorded], effect: s.Effect) -> str:
    """The last that was heard of the call itself."""
    if not effect.unknown_detail:
        return ""
    seq = next((r.seq for r in reversed(log) if _is_unknown(r, effect.number)), None)
    return _("%(detail)s (event %(seq)s)") % {"detail": effect.unknown_detail, "seq": seq}


def _is_unknown(recorded: e.Recorded, number: int) -> bool:
    return isinstance(recorded.event, e.OutcomeUnknown) and recorded.event.effect == number


def _asking(state: s.RunState, effect: s.Effect, reader: Reader, can_ask: bool) -> Context:
    if effect.status is not s.EffectStatus.UNKNOWN:
        return {}
    if not effect.terms.queryable:
        return {"ask_why_not": _("%(system)s cannot be asked about this effect.") % {"system": effect.system}}
    if not can_ask:
        return {"ask_why_not": _("This console does not have the version of the agent that could ask.")}
    right = Right.OPERATE_RUNS
    if right not in reader.mine:
        return {"ask_why_not": why_not(reader.person, right, reader.holders[right])}
    facts = {"system": effect.system, "operation": effect.operation_id}
    text = _("This asks %(system)s by operation id %(operation)s. It sends nothing.") % facts
    return {"ask": {"request": text, "url": reverse("effect-ask", args=[state.identity.run, effect.number])}}


def _concluding(state: s.RunState, effect: s.Effect, reader: Reader) -> Context:
    if effect.status in (s.EffectStatus.CONFIRMED, s.EffectStatus.NOT_EXECUTED):
        return {"settled_already": settled_sentence(effect)}
    if effect.status is s.EffectStatus.IN_FLIGHT:
        return {"settled_already": settled_sentence(effect)}
    right = Right.RECONCILE_EFFECTS
    if right in reader.mine:
        return {"may_conclude": True}
    return {"may_conclude": False, "why_not": why_not(reader.person, right, reader.holders[right])}


def settled_sentence(effect: s.Effect) -> str:
    """How a settled effect was settled."""
    receipt = effect.receipt
    facts = {
        "effect": f"E-{effect.number}",
        "seq": receipt.seq if receipt else 0,
        "at": words.clock(receipt.at) if receipt else "",
        "reference": receipt.reference if receipt else "",
        "names": stated.by(effect),
    }
    if facts["names"]:
        return _stated_sentence(effect, facts)
    if effect.status in s.OPEN_EFFECT:
        return _("It is being sent now: nothing is in doubt yet.")
    if effect.status is s.EffectStatus.CONFIRMED:
        return _("%(effect)s is confirmed since %(at)s (event %(seq)d), receipt %(reference)s.") % facts
    return _("%(effect)s did not happen: recorded at %(at)s (event %(seq)d).") % facts


def _stated_sentence(effect: s.Effect, facts: Mapping[str, Any]) -> str:
    if effect.status is s.EffectStatus.CONFIRMED:
        text = _(
            "%(effect)s is confirmed since %(at)s (event %(seq)d), as stated by %(names)s, reference %(reference)s. "
            "It is no answer of the other system."
        )
    else:
        text = _(
            "%(effect)s did not happen, as stated by %(names)s: recorded at %(at)s (event %(seq)d). "
            "It is no answer of the other system."
        )
    return text % facts


def _answers(run: str, log: Sequence[e.Recorded], effect: s.Effect) -> Context:
    """The newest question with its answer in full, and the earlier ones, the newest first."""
    asked = [r for r in log if isinstance(r.event, e.EffectQueried) and r.event.effect == effect.number]
    told = [{**_answer(r, effect), "event_url": _event(run, r.seq)} for r in reversed(asked)]
    return {"answers": told[:1], "earlier": told[1:]}


def _event(run: str, seq: int) -> str:
    return f"{reverse('run-events', args=[run])}?from={seq}#event-{seq}"


def _answer(recorded: e.Recorded, effect: s.Effect) -> Context:
    event = recorded.event
    assert isinstance(event, e.EffectQueried)
    found: Context = {
        "at": recorded.at,
        "by": recorded.actor.name,
        "account": event.account,
        "evidence_seq": recorded.seq,
        "raw": indented(e.text_of(event.evidence)),
    }
    if event.failure is not None:
        facts = {"system": effect.system, "failure": words.inside(event.failure)}
        return {**found, "failed": _("We could not ask %(system)s: %(failure)s.") % facts}
    ask = next(a for a in effect.asks if a.seq == recorded.seq)
    return {
        **found,
        "found": _found(event.matches),
        "facts": [fact for match in event.matches for fact in _facts(match)],
        "compared": [row for match in event.matches for row in _compared(effect, match)],
        "supports": _supports(effect, ask),
        "coverage": _coverage(effect, ask),
    }


def _found(matches: Sequence[e.MatchFound]) -> str:
    if not matches:
        return _("No record.")
    facts = {"number": len(matches), "references": words.joined([m.reference for m in matches])}
    return (
        ngettext("%(number)d match: %(references)s", "%(number)d matches: %(references)s", len(matches))
        % facts
    )


def _facts(match: e.MatchFound) -> list[Mapping[str, str]]:
    state = _("final") if match.final else _("not final yet")
    return [
        {"name": _("reference"), "value": match.reference},
        {"name": _("state there"), "value": _("reversed, or done in part") if match.reversed else state},
    ]


def _compared(effect: s.Effect, match: e.MatchFound) -> list[Context]:
    """Field by field: what was sent and what the record shows."""
    sent = {row["path"]: row["value"] for row in flat(effect.arguments)}
    shown = {row["path"]: row["value"] for row in flat(e.text_of(match.arguments))}
    pairs = [("account", effect.account, match.account)]
    if match.key is not None:
        pairs.append(("idempotency key", effect.key, match.key))
    pairs += [(path, sent[path], shown[path]) for path in sent if path in shown]
    return [{"name": n, "sent": a, "found": b, "same": a == b} for n, a, b in pairs]


def _supports(effect: s.Effect, ask: s.Ask) -> str:
    """Which conclusion the answer by itself allows, with the rule."""
    allowed = conclusion_conditions(effect, ask, ask.at)
    if not allowed["happened"]:
        return _("It happened (one final record with our key, account and arguments).")
    if not allowed["not_happened"]:
        return _("It did not happen (no record, heard after “not found” can be believed).")
    failing = _failing(effect, ask, allowed)
    text = _("Nothing any more: %(why)s") if failing == "newer_answer" else _("Nothing yet: %(why)s")
    return text % {"why": words.CONDITIONS[failing][0]}


def _failing(effect: s.Effect, ask: s.Ask, conditions: Mapping[str, str]) -> str:
    """The condition that matters: of "it happened" where there is a record, else of "it did not"."""
    return conditions["happened" if ours(effect, ask.matches) else "not_happened"]


def _coverage(effect: s.Effect, ask: s.Ask) -> str:
    facts = {"settled": words.clock(effect.settled_at)}
    if ask.at >= effect.settled_at:
        return _("Heard after %(settled)s, from when on “not found” counts.") % facts
    return _("Heard before %(settled)s, until when “not found” is no evidence.") % facts


def outcomes(effect: s.Effect, ask: s.Ask | None, now: datetime) -> list[Context]:
    """The three conclusions; one that cannot be recorded says which condition fails and what is needed."""
    failing = conclusion_conditions(effect, ask, now)
    matches = ours(effect, ask.matches) if ask else ()
    reference = matches[0].reference if matches else ""
    facts = {"effect": f"E-{effect.number}", "reference": reference}
    if failing["happened"]:
        happened = _("%(effect)s becomes Confirmed. It is never sent again.") % facts
    else:
        happened = (
            _("Record receipt %(reference)s. %(effect)s becomes Confirmed. It is never sent again.") % facts
        )
    return [
        _outcome("happened", _("It happened."), happened, failing["happened"], effect),
        _outcome(
            "not_happened", _("It did not happen."), _not_happened(facts), failing["not_happened"], effect
        ),
        {
            "value": "still_unknown",
            "title": _("Still unknown."),
            "text": _("Nothing changes and nothing is recorded."),
            "available": True,
        },
    ]


def _not_happened(facts: Mapping[str, str]) -> str:
    return (
        _("%(effect)s becomes “Did not happen”. It may be sent again under the same key, after all checks.")
        % facts
    )


def _outcome(value: str, title: str, text: str, condition: str, effect: s.Effect) -> Context:
    found: Context = {"value": value, "title": title, "text": text, "available": not condition}
    if condition and not effect.terms.queryable:
        found["why_not"] = _("%(system)s cannot be asked about this effect.") % {"system": effect.system}
        found["needed"] = [_("Needed: the statement of a person, below.")]
    elif condition:
        fails, needed = words.CONDITIONS[condition]
        settled = {"settled": words.clock(effect.settled_at)}
        found |= {"why_not": str(fails), "needed": [str(needed) % settled]}
    return found
