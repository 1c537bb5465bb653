"""Sentences about waits, answers, child runs and what one run undid of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.utils.translation import gettext as _

from runs.machine import events as e
from runs.pages import words


def _began(event: e.WaitBegan) -> str:
    facts = {"signal": event.signal, "until": words.moment(event.until) if event.until else ""}
    if event.kind == "timer":
        return _("waits until %(until)s.") % facts
    if event.kind == "children":
        return _("waits for the runs that it started.")
    if event.until:
        return _("waits for the answer “%(signal)s” until %(until)s.") % facts
    return _("waits for the answer “%(signal)s”.") % facts


def _ended(event: e.WaitEnded) -> str:
    return _("stopped waiting: what step %(step)s waited for came.") % {"step": event.step}


def _signal(event: e.SignalReceived) -> str:
    return _("gave the answer “%(name)s”. It is kept until a step waits for it.") % {"name": event.name}


def _child(event: e.ChildStarted) -> str:
    facts = {
        "run": event.run,
        "agent": event.agent,
        "version": event.agent_version,
        "goal": words.ended(event.goal),
    }
    return _("started %(run)s (%(agent)s %(version)s) for this run: %(goal)s") % facts


def _replaced(event: e.ChildReplaced) -> str:
    facts = {"run": event.run, "successor": event.successor}
    return _("was told that %(run)s was restarted as %(successor)s, and waits for that one.") % facts


def _child_ended(event: e.ChildEnded) -> str:
    if event.ended == "succeeded":
        return _("was told that %(run)s reached its goal.") % {"run": event.run}
    return _("was told that %(run)s ended before its goal.") % {"run": event.run}


def _compensated(event: e.EffectCompensated) -> str:
    facts = {"effect": f"E-{event.effect}", "run": event.by_run, "by": f"E-{event.by_effect}"}
    if event.stands:
        return _("was told that %(run)s did not undo %(effect)s by its %(by)s: it stands.") % facts
    return _("was told that %(run)s undid %(effect)s by its %(by)s.") % facts


def _carried_out(event: e.PlanCarriedOut) -> str:
    return _("carried out plan v%(version)d; the agent makes the next one.") % {"version": event.version}


WAITS: Final[dict[type[e.Event], Callable[[Any], str]]] = {
    e.WaitBegan: _began,
    e.WaitEnded: _ended,
    e.SignalReceived: _signal,
    e.ChildStarted: _child,
    e.ChildReplaced: _replaced,
    e.ChildEnded: _child_ended,
    e.EffectCompensated: _compensated,
    e.PlanCarriedOut: _carried_out,
}
