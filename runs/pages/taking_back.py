"""Taking an approval back: whose it is, what is not sent any more, and what was sent and stands."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from runs.machine import state as s
from runs.models import Run
from runs.pages import requests, words
from runs.pages.run_page import Reader, heading

Context = dict[str, Any]


def context(run: Run, state: s.RunState, plan: s.PlanVersion, reader: Reader) -> Context:
    """All of runs/take_back.html but what a sent form adds."""
    given = requests.mine(state, reader.person, plan.version)
    left = [step.title for step in state.remaining if step.wait is None and step.name not in _open(state)]
    return {
        "run": heading(run, state),
        "plan": {"version": plan.version, "digest": plan.digest},
        "review_url": reverse("plan-review", args=[run.pk, plan.version]),
        "given": _given(state, given) if given else "",
        "over": "" if given else _("You have no approval of this plan version that could be taken back."),
        "left": left,
        "sent": [words.effect_title(x) for x in _sent(state, plan)],
        "in_doubt": _in_doubt(state),
        "others": _others(state, reader.person),
        "values": {},
        "errors": [],
    }


def _open(state: s.RunState) -> set[str]:
    return {effect.step for effect in state.open_effects}


def _sent(state: s.RunState, plan: s.PlanVersion) -> list[s.Effect]:
    """What was sent on the plan version and was not refused."""
    return [x for x in state.effects.values() if x.plan_version == plan.version and x.status in s.HELD]


def _given(state: s.RunState, given: s.Decision) -> str:
    assert state.request is not None
    facts = {"at": words.moment(given.at), "until": words.moment(state.request.expires_at)}
    return _("You approved it at %(at)s. The approval stands until %(until)s at most.") % facts


def _in_doubt(state: s.RunState) -> str:
    if not state.open_effects:
        return ""
    text = ngettext(
        "%(number)d change may be under way now: taking back does not stop that one. It is settled first.",
        "%(number)d changes may be under way now: taking back does not stop those. They are settled first.",
        len(state.open_effects),
    )
    return text % {"number": len(state.open_effects)}


def _others(state: s.RunState, person: User) -> str:
    """Those whose approval of the same request ends with it, since the whole plan asks anew."""
    decisions = state.request.decisions if state.request else ()
    names = [d.name for d in decisions if d.verdict == "approve" and d.person != str(person.pk)]
    if not names:
        return ""
    return _("%(names)s approved it too and will have to approve again.") % {"names": words.joined(names)}
