"""Asking the other systems about everything that is unknown of one run, where several runs are asked about at once."""

from __future__ import annotations

from time import monotonic
from typing import Final
from uuid import UUID

from accounts.models import User
from accounts.rights import Right
from runs import actions
from runs.access import run_for
from runs.actions.together import Came, Line, form_of
from runs.machine import state as s
from runs.models import Run
from runs.pages.words import joined
from runs.tools import WritingTool
from runs.views.pages import Opened, opened_run
from runs.views.reconcile import ASKED, ask_system, tool_of

#: Characters of what a system said that a line quotes; all of it is in the log.
_QUOTED: Final = 200


def ask(*, person: User, run: Run, submission: UUID, until: float) -> Line:
    """Ask about each unknown effect and store the answers as evidence: nothing is sent, and nothing concluded.

    Nothing is begun after `until`, by this process's clock. Raises what runs.views.refusals names.
    """
    page = opened_run(person, run_for(person, run.pk, Right.OPERATE_RUNS))
    unknown = [x for x in page.state.effects.values() if x.status is s.EffectStatus.UNKNOWN]
    tools = [(effect, tool) for effect in unknown if (tool := tool_of(page, effect))]
    if not unknown or not tools:
        code = "no_tool" if unknown else "no_doubt"
        return Line(run=run.pk, came=Came.SKIPPED, code=code)
    heard: dict[str, str | None] = {}
    for effect, tool in tools:
        if monotonic() > until:
            break
        heard[f"E-{effect.number}"] = _asked(person, page, effect, tool, submission)
    return _line(run, heard)


def _asked(person: User, page: Opened, effect: s.Effect, tool: WritingTool, submission: UUID) -> str | None:
    form = form_of(submission, f"{page.run.pk} E-{effect.number}")
    if actions.repeated(form, person, ASKED):
        return None
    return ask_system(person, page, effect, tool, form)


def _line(run: Run, heard: dict[str, str | None]) -> Line:
    if not heard:
        return Line(run=run.pk, came=Came.SKIPPED, code="out_of_time")
    if silent := [f"{effect} {why[:_QUOTED]}" for effect, why in heard.items() if why]:
        return Line(run=run.pk, came=Came.FAILED, code="unanswered", name=joined(silent))
    return Line(run=run.pk, came=Came.DONE, code="answered", name=joined(list(heard)))
