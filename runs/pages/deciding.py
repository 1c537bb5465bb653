"""The decisions on a stopped run as choices: what each does here, what it takes, what an end would leave."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from accounts.rights import Right
from runs.machine import state as s
from runs.machine.safety import right_to
from runs.machine.transitions import Decision
from runs.pages import undo, words
from runs.pages.run_page import Reader
from runs.pages.who import why_not

Choice = dict[str, Any]


def right_of(decision: Decision) -> Right:
    """What a person needs for it."""
    return Right(right_to(decision))


def choice(decision: Decision, state: s.RunState, reader: Reader) -> Choice:
    """One of the `choices` of runs/decide.html. `off` says why this person may not take it."""
    right = right_of(decision)
    off = "" if right in reader.mine else why_not(reader.person, right, reader.holders[right])
    return {
        "value": decision.value,
        "title": words.DECISIONS[decision.value][0],
        "text": _does(decision, state),
        "off": off,
        "lines": _left(decision, state),
    }


def _left(decision: Decision, state: s.RunState) -> list[str]:
    if decision is not Decision.END:
        return []
    return undo.standing(state) or [_("Nothing: all that the run did is undone.")]


def _does(decision: Decision, state: s.RunState) -> str:
    codes = {reason.code for reason in state.reasons}
    match decision:
        case Decision.RETRY if "child_stopped" in codes:
            return _(
                "The runs that ended before their goal are started again, each as a new one with its own checks."
            )
        case Decision.RETRY if state.undoing:
            return _(
                "What could not be undone is tried again in a new round, after all checks are made again."
            )
        case Decision.RESUME if "signal_missing" in codes:
            return _(
                "The run waits on for the answer, for as long again. One that came meanwhile is taken at once."
            )
        case Decision.REPLAN if state.undoing:
            return _(
                "Code makes another plan that undoes what still stands. It is reviewed like the one before."
            )
        case Decision.RESTART if state.undoing:
            return _(
                "This run closes, and nothing more is undone. A new one pursues the goal again: what was undone is "
                "done again in a new round, what stands is not repeated."
            )
        case _:
            return str(words.DECISIONS[decision.value][1])
