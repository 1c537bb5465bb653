"""The replay viewer: one event, the state after it, what it changed, and whether the record agrees."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.machine import events as e
from runs.machine import state as s
from runs.models import Run
from runs.pages import relatives, timeline, words
from runs.pages.replay_changes import changes
from runs.pages.values import indented
from runs.replay import Replay, Step

Context = dict[str, Any]


def context(run: Run, found: Replay | None, *, asked: str = "") -> Context:
    """All of runs/replay.html. A run without events has only its heading; `asked` is the event of the address."""
    urls = {"events_url": reverse("run-events", args=[run.pk]), "url": reverse("run", args=[run.pk])}
    context: Context = {"run": {"id": run.pk, "title": run.goal, "seq": run.seq, **urls}, "step": None}
    if found is None:
        return context
    return {
        **context,
        "step": _step(found),
        "links": _links(found),
        "jumps": _jumps(found.steps),
        "first": found.steps[0].seq,
        "last": found.steps[-1].seq,
        "warnings": [*_missing(found, asked), *_not_here(found), *_warnings(run, found)],
        "parts": _parts(found.after) if found.after else [],
        "effects": _effects(found.after) if found.after else [],
        "changes": changes(found.before, found.after) if found.after else None,
    }


def _step(found: Replay) -> Context:
    step = found.step
    return {
        "seq": step.seq,
        "at": step.at,
        "type": step.type,
        "kind": step.actor.kind.value,
        "actor": step.actor.name,
        "text": timeline.sentence(found.event) if found.event else "",
        "whole": step.whole,
        "recorded": step.recorded,
        "recomputed": step.recomputed or "",
        "agrees": step.agrees,
        "body": None if step.body is None else indented(step.body),
    }


def _links(found: Replay) -> Context:
    """Addresses of the first, previous, next and last event; empty where this is it."""
    steps, here = found.steps, found.place
    wanted = {"first": 0, "previous": here - 1, "next": here + 1, "last": len(steps) - 1}
    return {
        name: _address(steps[n].seq) if 0 <= n < len(steps) and n != here else ""
        for name, n in wanted.items()
    }


def _address(seq: int) -> str:
    """With the stepper as its place on the page, so that its keys go on working."""
    return f"?seq={seq}#stepper"


def _jumps(steps: tuple[Step, ...]) -> list[Context]:
    """Where the run stopped last, and where an outcome first became unknown, by what was recorded then."""
    stops = [x.seq for x in steps if x.recorded != x.recorded_before and x.recorded in _STOPPED]
    doubts = [x.seq for x in steps if x.recorded == s.State.UNKNOWN]
    found = []
    if stops:
        found.append({"label": _("stop"), "url": _address(stops[-1])})
    if doubts:
        found.append({"label": _("first unknown"), "url": _address(doubts[0])})
    return found


_STOPPED = frozenset({s.State.NEEDS_HUMAN.value, *(x.value for x in s.TERMINAL)})


def _missing(found: Replay, asked: str) -> list[str]:
    """That another event is shown than the one the address asks for."""
    if not asked or asked == str(found.at):
        return []
    return [_("There is no such event in this run; event %(seq)d is shown.") % {"seq": found.at}]


def _not_here(found: Replay) -> list[str]:
    """That the history begins with a checkpoint."""
    before = found.steps[0].seq - 1
    if found.steps[0].type != e.RunTakenIn.__name__:
        return []
    text = ngettext(
        "Event 1 is not here: the run was taken in from its checkpoint.",
        "Events 1 to %(last)d are not here: the run was taken in from its checkpoint.",
        before,
    )
    return [text % {"last": before}]


def _warnings(run: Run, found: Replay) -> list[str]:
    """Where the record does not agree with itself, each as a sentence."""
    said = []
    if found.differs_from:
        text = _("Recorded state differs from recomputed state from event %(seq)d on.")
        said.append(text % {"seq": found.differs_from})
    if found.unreadable:
        facts = {"seq": found.unreadable[0], "why": found.unreadable[1]}
        text = _(
            "This version cannot reduce the log from event %(seq)d on, so only what was recorded is shown: %(why)s"
        )
        said.append(text % facts)
    if found.broken_at:
        said.append(_("The chain of hashes is broken at event %(seq)d.") % {"seq": found.broken_at})
    if found.steps[-1].seq != run.seq or found.steps[-1].recorded != run.state:
        facts = {"last": found.steps[-1].seq, "seq": run.seq}
        said.append(_("The log ends at event %(last)d, the run beside it says %(seq)d.") % facts)
    return said


def _parts(state: s.RunState) -> list[Context]:
    """The state after the event: names and values of what matters."""
    return [{"name": name, "text": text} for name, text in _named(state) if text]


def _named(state: s.RunState) -> list[tuple[str, str]]:
    return [
        (_("Goal"), _("v%(version)d") % {"version": state.goal.version}),
        (_("Plan"), _plan(state)),
        (_("Constraints"), str(len(state.constraints))),
        (_("Open obligations"), words.joined(f"B-{o.number}" for o in state.open_obligations)),
        (_("Observations"), str(len(state.observations))),
        (_("Reasons"), words.clauses(words.reason(r) for r in state.reasons)),
        (_("End asked for"), _ended(state)),
        (
            _("Waits for"),
            relatives.what_for(state.wait) if state.wait and state.state is s.State.WAITING else "",
        ),
        (_("Answers"), _answers(state)),
        (_("Runs it started"), words.joined(f"{x.run} {x.ended}".strip() for x in state.children.values())),
        (_("Started by"), state.identity.parent),
        (_("Successor"), state.successor),
    ]


def _ended(state: s.RunState) -> str:
    if not state.cancel_requested:
        return ""
    return _("yes, and that what it did is undone") if state.undo_requested else _("yes")


def _answers(state: s.RunState) -> str:
    """Each answer by name, with the step that took it."""
    return words.joined(f"{x.name} → {x.taken_by or '–'}" for x in state.signals)


def _plan(state: s.RunState) -> str:
    if state.plan is None:
        return _("none")
    steps = len(state.plan.plan.steps)
    facts = {"version": state.plan.version, "done": steps - len(state.remaining), "steps": steps}
    if state.plan.voided_seq is not None:
        return _("v%(version)d, not valid any more") % facts
    return _("v%(version)d, %(done)d of %(steps)d steps done") % facts


def _effects(state: s.RunState) -> list[Context]:
    """How many effects stand how."""
    counted = Counter(effect.status.value for effect in state.effects.values())
    return [{"state": status, "number": number} for status, number in counted.items()]
