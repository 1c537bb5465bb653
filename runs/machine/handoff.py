"""The handoff: seven lines in fixed order, from the state alone, as codes and numbers. The page has the words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum

import msgspec

from runs.machine import state as s
from runs.machine.safety import Action, SafeAction, next_safe_action

KEYS = ("goal", "constraints", "obligations", "last_confirmed", "pending", "observations", "next")


class Mark(StrEnum):
    """How a line is to be read at a glance."""

    OK = "ok"
    ATTENTION = "attention"
    UNKNOWN = "unknown"
    NEXT = "next"
    NONE = "none"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line. `code` picks the sentence; the rest is what it speaks of."""

    key: str
    mark: Mark
    code: str
    numbers: dict[str, int] = {}
    subjects: tuple[str, ...] = ()  #: ids as people see them: E-1, O-2, B-1
    effect: s.Effect | None = None
    obligation: s.Obligation | None = None
    action: SafeAction | None = None


def handoff(state: s.RunState, now: datetime) -> tuple[Line, ...]:
    """Exactly seven lines, those with nothing to say included."""
    return tuple(_LINES[key](state, now) for key in KEYS)


def _goal(state: s.RunState, now: datetime) -> Line:
    code = "original" if state.goal.version == 1 else "revised"
    return Line(key="goal", mark=Mark.OK, code=code, numbers={"version": state.goal.version})


def _constraints(state: s.RunState, now: datetime) -> Line:
    kinds = Counter(c.term.source_kind for c in state.constraints)
    withdrawn = tuple(r.subject for r in state.reasons if r.code == "constraint_withdrawn")
    if not state.constraints:
        return Line(key="constraints", mark=Mark.NONE, code="none")
    mark, code = (Mark.ATTENTION, "withdrawn") if withdrawn else (Mark.OK, "in_force")
    numbers = {"count": len(state.constraints), **kinds}
    return Line(key="constraints", mark=mark, code=code, numbers=numbers, subjects=withdrawn)


def _obligations(state: s.RunState, now: datetime) -> Line:
    owed = state.open_obligations
    done = len(state.obligations) - len(owed)
    if not owed:
        return Line(key="obligations", mark=Mark.NONE, code="none", numbers={"done": done})
    first = min(owed, key=lambda o: (o.due_at is None, o.due_at or o.opened_at))
    ids = tuple(f"B-{o.number}" for o in owed)
    numbers = {"count": len(owed), "done": done, "overdue": sum(o.overdue(now) for o in owed)}
    return Line(
        key="obligations", mark=Mark.ATTENTION, code="open", numbers=numbers, subjects=ids, obligation=first
    )


def _last_confirmed(state: s.RunState, now: datetime) -> Line:
    effect = state.last_confirmed
    if effect is None:
        undone = any(x.status is s.EffectStatus.COMPENSATED for x in state.effects.values())
        code = "all_undone" if undone else "none_confirmed" if state.effects else "none_sent"
        return Line(key="last_confirmed", mark=Mark.NONE, code=code)
    return Line(key="last_confirmed", mark=Mark.OK, code="confirmed", effect=effect)


def _pending(state: s.RunState, now: datetime) -> Line:
    unknown = [e for e in state.open_effects if e.status is s.EffectStatus.UNKNOWN]
    flying = [e for e in state.open_effects if e.status is s.EffectStatus.IN_FLIGHT]
    left = () if state.state in s.TERMINAL else state.remaining
    waits = sum(step.wait is not None for step in left)
    planned = len(left) - waits - len(state.open_effects) if left else 0
    mark = (
        Mark.UNKNOWN if unknown else Mark.ATTENTION if flying else Mark.OK if planned or waits else Mark.NONE
    )
    numbers = {
        "unknown": len(unknown), "in_flight": len(flying), "planned": max(planned, 0), "waits": waits,
    }  # fmt: skip
    ids = tuple(f"E-{e.number}" for e in (*unknown, *flying))
    return Line(key="pending", mark=mark, code="counts", numbers=numbers, subjects=ids)


def _observations(state: s.RunState, now: datetime) -> Line:
    if not state.observations:
        return Line(key="observations", mark=Mark.NONE, code="none")
    count = len(state.observations)
    if state.state in s.TERMINAL:
        # Nothing rests on them any more, so they do not grow too old.
        return Line(key="observations", mark=Mark.OK, code="over", numbers={"count": count, "old": 0})
    old = tuple(f"O-{o.number}" for o in state.observations.values() if o.expires_at <= now)
    mark = Mark.ATTENTION if old else Mark.OK
    numbers = {"count": count, "old": len(old)}
    return Line(key="observations", mark=mark, code="read", numbers=numbers, subjects=old)


def _next(state: s.RunState, now: datetime) -> Line:
    action = next_safe_action(state)
    left = state.successor or state.open_obligations
    mark = Mark.NONE if action.action is Action.NONE and not left else Mark.NEXT
    return Line(key="next", mark=mark, code=action.action.value, action=action)


_LINES: dict[str, Callable[[s.RunState, datetime], Line]] = {
    "goal": _goal,
    "constraints": _constraints,
    "obligations": _obligations,
    "last_confirmed": _last_confirmed,
    "pending": _pending,
    "observations": _observations,
    "next": _next,
}
