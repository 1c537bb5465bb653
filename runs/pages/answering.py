"""Giving a run an answer: what it waits for now, and whether this person may."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from accounts.rights import Right
from runs.machine import state as s
from runs.machine.events import SignalReceived
from runs.machine.transitions import allows
from runs.machine.waits import WaitKind
from runs.models import Run
from runs.pages import next_action, words
from runs.pages.run_page import Reader, heading
from runs.pages.stopping import may

Context = dict[str, Any]


def answer(run: Run, state: s.RunState, reader: Reader) -> Context:
    """All of runs/answer.html but what a sent form adds."""
    return {
        "run": heading(run, state),
        "waits": _waits(state),
        "over": ""
        if allows(state.state, SignalReceived)
        else _("The run is over and takes no answer any more."),
        **may("may_answer", Right.OPERATE_RUNS, reader),
        "values": {"name": _name(state)},
        "errors": [],
    }


def _name(state: s.RunState) -> str:
    """The name that is waited for now, or will be next."""
    missing = (x.subject for x in state.reasons if x.code == "signal_missing")
    ahead = (x.wait.signal for x in state.remaining if x.wait and x.wait.kind is WaitKind.SIGNAL)
    return next_action.awaited(state) or next(missing, "") or next(ahead, "")


def _waits(state: s.RunState) -> str:
    wait = state.wait
    if name := next_action.awaited(state):
        until = words.moment(wait.until) if wait and wait.until else ""
        if until:
            return _("The run waits for the answer “%(name)s” until %(until)s.") % {
                "name": name,
                "until": until,
            }
        return _("The run waits for the answer “%(name)s”.") % {"name": name}
    if any(x.code == "signal_missing" for x in state.reasons):
        return _(
            "The answer “%(name)s” did not come in time. It is kept when it comes now; the run goes on once a person "
            "decides so."
        ) % {"name": _name(state)}
    return _("The run waits for no answer now. Yours is kept until a step waits for it.")
