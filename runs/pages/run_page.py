"""The run page and its print view, built from one reading of the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from accounts.rights import Right
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.hidden import Hidden
from runs.models import Run
from runs.pages import (
    assumed,
    authority,
    effects,
    ending,
    goal_versions,
    handoff_lines,
    next_action,
    observed,
    owed,
    parts,
    plans,
    relatives,
    requests,
    shortcuts,
    stated_since,
    timeline,
    who,
    words,
    workers,
)

Context = dict[str, Any]
TIMELINE = 100


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Who reads, with the people who hold each right on the run, and the time of the page."""

    person: User
    holders: who.Holders
    now: datetime
    hidden: Hidden | None = None  #: what stands as marks in the log and state of the page
    #: The state with its hidden values, for what tools, policies and forms make of them. Nothing of it is shown.
    whole: s.RunState | None = None

    def judged(self, state: s.RunState, plan: s.PlanVersion) -> tuple[s.RunState, s.PlanVersion]:
        """The state and the plan version with their hidden values, as policies judge them."""
        if self.whole is None or self.hidden is None:
            return state, plan
        return self.whole, next(x for x in self.whole.plans if x.version == plan.version)

    def told(self, text: str) -> str:
        """A text that was made of `whole`, as this reader may see it."""
        return self.hidden.text(text) if self.hidden else text

    @property
    def mine(self) -> frozenset[Right]:
        """Those of the acting rights that the reader holds."""
        return who.rights_of(self.person, self.holders)


def heading(run: Run, state: s.RunState) -> Context:
    """The `run` of every page about a run."""
    return {
        "id": run.pk,
        "title": state.goal.text,
        "state": words.shown_state(state.state.value, [reason.code for reason in state.reasons]),
        "state_note": _state_note(state),
        "seq": state.seq,
        "url": reverse("run", args=[run.pk]),
        "agent": run.agent.title,
        "agent_version": run.agent_version,
        "started_at": state.identity.started_at,
        "since": state.since,
        "since_label": _("stopped") if state.reasons else _("since"),
        "why_stopped": _why_stopped(state),
        "closed": state.state in s.TERMINAL,
    }


def _state_note(state: s.RunState) -> str:
    ended = _ended_note(state)
    hard = sum(not effect.terms.reversible for effect in state.open_effects)
    if hard:
        text = ngettext(
            "%(number)d effect that cannot be undone is in doubt.",
            "%(number)d effects that cannot be undone are in doubt.",
            hard,
        )
        return " ".join(filter(None, (text % {"number": hard}, ended)))
    return ended


def _ended_note(state: s.RunState) -> str:
    if not state.cancel_requested or state.state in s.TERMINAL:
        return ""
    if state.undo_requested:
        return _("Its end was asked for, and that what it did is undone.")
    return _("Its end was asked for.")


def _why_stopped(state: s.RunState) -> str:
    if not state.reasons:
        return ""
    return _("because %(reasons)s") % {"reasons": words.clauses(words.reason(r) for r in state.reasons)}


def context(
    run: Run,
    log: Sequence[e.Recorded],
    state: s.RunState,
    reader: Reader,
    *,
    older: int | None,
    saw: int | None,
    known: relatives.Known | None = None,
    outdated: str = "",
) -> Context:
    """All of runs/run.html. `older` is the seq below which the timeline begins, `saw` the version last seen; `known`
    has the relatives that the reader may see; `outdated` says that the policy changed under an open request.
    """
    events_url = reverse("run-events", args=[run.pk])
    action = {
        **_next(state, reader, outdated),
        **_whole_reason(state, log, events_url),
        "asked": ending.asked(log, state),
        **workers.told(state),
    }
    times = {r.seq: r.at for r in log}
    known = known or {}
    ledger = effects.rows(state, reader.mine, times, seen=known)
    return {
        "run": heading(run, state),
        "inbox_url": reverse("inbox"),
        "handoff_url": reverse("run-handoff", args=[run.pk]),
        "replay_url": reverse("run-replay", args=[run.pk]),
        "artifacts_url": reverse("run-artifacts", args=[run.pk]),
        "events_url": events_url,
        "keys": shortcuts.of_state(state),
        "next": action,
        "who": who.lines(state, reader.person, reader.holders),
        "handoff": handoff_lines.lines(state, reader.now, action),
        "goals": goal_versions.history(state),
        **plans.shown(state, may_review=_may_review(state, reader)),
        "effects": ledger,
        "effects_summary": effects.summary(ledger),
        **relatives.context(state, known, reader.mine, times),
        **_timeline(log, events_url, older, saw),
        "observations": observed.rows(state, log, reader.now),
        **observed.reading_again(state, reader.mine),
        "assumptions": assumed.rows(state, log, reader.now),
        "constraints": parts.constraints(state, reader.person, reader.holders),
        "stated_since": stated_since.rows(run, state),
        "obligations": owed.rows(state, times, reader.now, reader.mine),
        **owed.adding(state, reader.mine),
        "approvals": requests.rows(state),
        "authority": authority.shown(state, log, reader.person, reader.holders),
    }


def _next(state: s.RunState, reader: Reader, outdated: str) -> Context:
    found = next_action.shown(state, reader.mine)
    return next_action.without_review(found, outdated) if outdated else found


def _whole_reason(state: s.RunState, log: Sequence[e.Recorded], events_url: str) -> Context:
    """Where a reason stands in full that `next` quotes only the beginning of."""
    if not any(len(reason.evidence) > words.QUOTED for reason in state.reasons):
        return {}
    seq = next(r.seq for r in reversed(log) if isinstance(r.event, e.HumanNeeded | e.PlanRejected))
    return {"whole_url": f"{events_url}?from={seq}#event-{seq}", "whole_seq": seq}


def _may_review(state: s.RunState, reader: Reader) -> bool:
    request, hidden = state.request, who.hides_values(state)
    return request is not None and not who.why_not_decide(
        request, reader.person, reader.holders, hidden=hidden
    )


def _timeline(log: Sequence[e.Recorded], events_url: str, older: int | None, saw: int | None) -> Context:
    before = [r for r in log if older is None or r.seq < older]
    page = before[-TIMELINE:]
    more = f"?older={page[0].seq}#timeline" if len(before) > TIMELINE else ""
    return {"timeline": timeline.entries(page, events_url=events_url, saw=saw), "older_url": more}


def unreadable(run: Run, why: str) -> Context:
    """What can be shown of a run whose log this build cannot reduce: that, and the raw events."""
    return {
        "run": {
            "id": run.pk, "title": run.goal, "state": run.state, "seq": run.seq, "url": reverse("run", args=[run.pk]),
            "agent": run.agent.title, "agent_version": run.agent_version, "since": run.since,
            "since_label": _("since"),
        },
        "inbox_url": reverse("inbox"),
        "handoff_url": reverse("run-handoff", args=[run.pk]),
        "replay_url": reverse("run-replay", args=[run.pk]),
        "events_url": reverse("run-events", args=[run.pk]),
        "next": {
            "do": _("No safe action is known. Ask the people who run this console."),
            "why": _("The log of this run cannot be read by this version: %(why)s") % {"why": why},
            "not_safe": [_("Anything that sends: nobody can tell what was sent before.")],
            "decided": "",
        },
        "who": [],
        "handoff": handoff_lines.uncomputed(why),
        "plan": None, "effects": [], "timeline": [], "observations": [], "constraints": [], "obligations": [],
        "assumptions": [],
        "approvals": [],
    }  # fmt: skip
