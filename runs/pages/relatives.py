"""What a run waits for, the answers it got, the runs it started and the one that started it: as rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.rights import Right
from runs.machine import state as s
from runs.machine.events import SignalReceived
from runs.machine.transitions import allows
from runs.machine.waits import Child, Signal, Wait, WaitKind
from runs.models import Run
from runs.pages import undo, words
from runs.pages.next_action import answer_address
from runs.pages.values import indented

Row = dict[str, Any]
Known = Mapping[str, Run]  #: the relatives that the reader may see, by id
Times = Mapping[int, datetime]
MOST = 100  #: of waits, answers and runs that one page lists, the newest; raw events have all


def related(state: s.RunState) -> list[str]:
    """The ids of all runs that a page about this one names, at most a few hundred."""
    children = [child.run for child in _newest(state.children)]
    undone = [x.run for effect in state.effects.values() for x in (effect.undoes, effect.compensated_by) if x]
    found = dict.fromkeys([state.identity.parent, *children, *islice(undone, MOST)])
    return [run for run in found if run and run != state.identity.run]


def context(state: s.RunState, known: Known, mine: frozenset[Right], times: Times) -> Row:
    """`waits`, `answers`, `children`, `parent`, `left` and what goes with them, of runs/run.html."""
    may_answer = Right.OPERATE_RUNS in mine and allows(state.state, SignalReceived)
    return {
        "waits": [_wait(state, x, times) for x in _newest(state.waits)],
        "answers": [_answer(x) for x in reversed(state.signals[-MOST:])],
        "children": [_child(x, known, times) for x in _newest(state.children)],
        "unlisted": sum(max(len(x) - MOST, 0) for x in (state.waits, state.signals, state.children)),
        "children_url": f"{reverse('inbox')}?view=any&parent={state.identity.run}",
        "parent": _parent(state, known),
        "hears": may_answer and _may_hear(state),
        "answer_url": answer_address(state.identity.run),
        "left": undo.left(state),
    }


def _newest[T](parts: Mapping[str, T]) -> list[T]:
    """The latest parts, the newest first."""
    return list(islice(reversed(list(parts.values())), MOST))


def _may_hear(state: s.RunState) -> bool:
    """Whether the run hears answers at all: it got one, or a step of its plan waits for one."""
    steps = state.plan.plan.steps if state.plan else ()
    return bool(state.signals) or any(x.wait and x.wait.kind is WaitKind.SIGNAL for x in steps)


def _wait(state: s.RunState, wait: Wait, times: Times) -> Row:
    ended = times.get(wait.ended_seq or 0)
    return {
        "step": wait.step,
        "what": what_for(wait),
        "since": wait.began_at,
        "until": None if ended else wait.until,
        "ended_at": ended,
        "note": _wait_note(state, wait),
    }


def what_for(wait: Wait) -> str:
    """What ends the wait."""
    match wait.kind:
        case WaitKind.TIMER:
            return _("a time")
        case WaitKind.SIGNAL:
            return _("the answer “%(signal)s”") % {"signal": wait.signal}
        case WaitKind.CHILDREN:
            return _("the runs that it started")


def _wait_note(state: s.RunState, wait: Wait) -> str:
    """Where the wait stands."""
    if wait.ended_seq is not None:
        return _("What it waited for came.")
    if state.state in s.TERMINAL or state.undoing:
        return _("It did not come before the run’s end.")
    if any(x.code == "signal_missing" and x.subject == wait.signal for x in state.reasons):
        return _("It did not come in time. A person decides.")
    return _("It has not come yet.")


def _answer(signal: Signal) -> Row:
    return {
        "name": signal.name,
        "payload": indented(signal.payload),
        "by": signal.by.name,
        "kind": signal.by.kind.value,
        "at": signal.at,
        "note": _("taken by step %(step)s") % {"step": signal.taken_by}
        if signal.taken_by
        else _("kept: no step has taken it"),
    }


def _child(child: Child, known: Known, times: Times) -> Row:
    run = known.get(child.run)
    return {
        "id": child.run,
        "url": reverse("run", args=[child.run]) if run else "",
        "name": child.name,
        "agent": child.agent,
        "goal": child.goal,
        "step": child.step,
        "budget": child.budget,
        "state": words.shown_state(run.state, run.reasons) if run else child.ended,
        "started_at": times.get(child.seq),
        "ended": _ended(child, times),
    }


def _ended(child: Child, times: Times) -> str:
    """How it ended, as this run was told; empty while it goes on."""
    if child.open:
        return ""
    at = times.get(child.ended_seq or 0)
    facts = {"at": words.moment(at) if at else "–", "spent": child.spent}
    said = (
        _("reached its goal, %(at)s")
        if child.ended == s.State.SUCCEEDED
        else _("ended before its goal, %(at)s")
    )
    spent = _("spent %(spent)s") if child.budget is not None else ""
    return words.clauses(filter(None, (said % facts, spent % facts)))


def _parent(state: s.RunState, known: Known) -> Row | None:
    parent = state.identity.parent
    if not parent:
        return None
    return {
        "run": parent,
        "url": reverse("run", args=[parent]) if parent in known else "",
        "step": state.identity.parent_step,
    }
