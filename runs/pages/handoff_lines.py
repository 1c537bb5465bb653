"""The seven handoff lines in words, for the run page, the print view and plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.machine import state as s
from runs.machine.handoff import KEYS, Line, handoff
from runs.pages import stated, words

Shown = dict[str, Any]


def lines(state: s.RunState, now: datetime, action: Shown) -> list[Shown]:
    """The `handoff` of parts/handoff.html; `action` is the page's next safe action."""
    return [
        {"key": x.key, "mark": x.mark.value, **_WORDS[x.key](state, x, action)} for x in handoff(state, now)
    ]


def uncomputed(why: str) -> list[Shown]:
    """Seven lines that say why there are none."""
    text = _("Could not be computed: %(reason)s") % {"reason": why}
    return [{"key": key, "mark": "attention", "text": text} for key in KEYS]


def _goal(state: s.RunState, line: Line, action: Shown) -> Shown:
    first, last = state.goals[0], state.goals[-1]
    quotes = [{"by": last.author.name, "at": last.at, "text": last.text}]
    if line.code == "original":
        return {"text": _("Original goal, never revised."), "quotes": quotes}
    by = _("Original, %(name)s") % {"name": first.author.name}
    quotes.append({"by": by, "at": first.at, "text": first.text})
    text = _("Committed now, goal v%(version)d.") % line.numbers
    return {"text": text, "quotes": quotes, "url": "#goal", "url_label": _("What changed")}


def _constraints(state: s.RunState, line: Line, action: Shown) -> Shown:
    if line.code == "none":
        return {"text": _("None. The agent is limited only by its permissions.")}
    kinds = [
        _("%(source)s: %(number)d") % {"number": n, "source": words.SOURCES.get(kind, kind)}
        for kind, n in line.numbers.items()
        if kind != "count"
    ]
    text = ngettext("%(count)d active.", "%(count)d active.", line.numbers["count"]) % line.numbers
    if line.code == "withdrawn":
        gone = words.joined(list(line.subjects))
        text = _("%(active)s Withdrawn or changed at the source: %(gone)s.") % {"active": text, "gone": gone}
    details = [f"C-{c.number}: {c.term.text}" for c in state.constraints]
    return {"text": text, "details": [words.joined(kinds), *_for_people(state), *details]}


def _for_people(state: s.RunState) -> Iterator[str]:
    """Which constraints in force code does not check, and which no person stands for."""
    held = [c for c in state.constraints if not c.withdrawn]
    if unchecked := [f"C-{c.number}" for c in held if not c.term.predicate]:
        yield _("Not checked by code: %(constraints)s.") % {"constraints": words.joined(unchecked)}
    if unsure := [f"C-{c.number}" for c in held if c.unconfirmed]:
        text = _("Inferred by the agent and not confirmed by a person: %(constraints)s.")
        yield text % {"constraints": words.joined(unsure)}


def _obligations(state: s.RunState, line: Line, action: Shown) -> Shown:
    if line.code == "none":
        done = line.numbers["done"]
        kept = ngettext("%(done)d was kept.", "%(done)d were kept.", done) % line.numbers if done else ""
        return {
            "text": _("None open. %(kept)s") % {"kept": kept} if kept else _("None. Nothing was promised.")
        }
    first = line.obligation
    assert first is not None
    facts = {**line.numbers, "text": first.text, "due": words.clock(first.due_at) if first.due_at else ""}
    if first.due_at:
        text = ngettext(
            "%(count)d open; next due %(due)s: %(text)s",
            "%(count)d open; next due %(due)s: %(text)s",
            line.numbers["count"],
        )
    else:
        text = ngettext(
            "%(count)d open: %(text)s", "%(count)d open; the first: %(text)s", line.numbers["count"]
        )
    said = text % facts
    if line.numbers["overdue"]:
        late = (
            ngettext("Overdue: %(overdue)d.", "Overdue: %(overdue)d.", line.numbers["overdue"]) % line.numbers
        )
        said = _("%(late)s %(said)s") % {"late": late, "said": said}
    more = [f"B-{o.number}: {o.text}" for o in state.open_obligations]
    return {"text": said, "details": more if len(more) > 1 else []}


def _last_confirmed(state: s.RunState, line: Line, action: Shown) -> Shown:
    effect = line.effect
    if effect is None or effect.receipt is None:
        return {"text": NOTHING[line.code]()}
    facts = {
        "effect": f"E-{effect.number}",
        "title": effect.title,
        "reference": effect.receipt.reference,
        "at": words.clock(effect.receipt.at),
    }
    if names := stated.by(effect):
        facts["names"] = names
        text = _("%(effect)s %(title)s · stated by %(names)s, reference %(reference)s · %(at)s")
        return {"text": text % facts}
    return {"text": _("%(effect)s %(title)s · receipt %(reference)s · %(at)s") % facts}


NOTHING: dict[str, Callable[[], str]] = {
    "none_sent": lambda: _("None. No effect was ever sent."),
    "none_confirmed": lambda: _("None. No effect was confirmed."),
    "all_undone": lambda: _("None stands: what was done was undone."),
}


def _pending(state: s.RunState, line: Line, action: Shown) -> Shown:
    if line.mark == "none":
        return {"text": _("None. Nothing is planned, in flight or unknown.")}
    open_ = [words.effect_title(state.effects[int(x[2:])]) for x in line.subjects]
    text = _("%(unknown)d unknown · %(in_flight)d in flight · %(planned)d planned, not sent") % line.numbers
    if line.numbers["waits"]:
        waits = ngettext("%(waits)d wait", "%(waits)d waits", line.numbers["waits"]) % line.numbers
        text = _("%(counts)s · %(waits)s") % {"counts": text, "waits": waits}
    titles = [
        (_("planned: %(title)s") if step.wait is None else _("to wait for: %(title)s"))
        % {"title": step.title}
        for step in state.remaining
        if step.wait is not None or state.standing(step.system, step.operation_id) is None
    ]
    return {"text": text, "details": [*open_, *(titles if state.state not in s.TERMINAL else [])]}


def _observations(state: s.RunState, line: Line, action: Shown) -> Shown:
    if line.code == "none":
        return {"text": _("None. The agent has read nothing yet.")}
    if line.code == "over":
        text = _("%(count)d read. The run is over, so nothing rests on them any more.")
        return {"text": text % line.numbers}
    if not line.subjects:
        return {"text": _("%(count)d read · none too old") % line.numbers}
    facts = {**line.numbers, "ids": words.joined(list(line.subjects))}
    return {"text": _("%(count)d read · %(old)d too old (%(ids)s)") % facts}


def _next(state: s.RunState, line: Line, action: Shown) -> Shown:
    found: Shown = {"text": action["do"], "details": [x for x in map(action.get, ("wait", "asked")) if x]}
    if action.get("url"):
        found |= {"url": action["url"], "url_label": action["label"]}
    return found


_WORDS: dict[str, Callable[[s.RunState, Line, Shown], Shown]] = {
    "goal": _goal,
    "constraints": _constraints,
    "obligations": _obligations,
    "last_confirmed": _last_confirmed,
    "pending": _pending,
    "observations": _observations,
    "next": _next,
}
