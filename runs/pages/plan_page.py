"""One plan version, its arguments, and its difference to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.urls import reverse

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.hidden import hides
from runs.models import Run
from runs.pages import assumed, goal_versions, late, plans, waiting_steps
from runs.pages.reviewing import latest_request
from runs.pages.run_page import Reader, heading
from runs.pages.who import why_not_decide

Context = dict[str, Any]


def context(
    run: Run,
    state: s.RunState,
    plan: s.PlanVersion,
    base: s.PlanVersion | None,
    reader: Reader,
    log: Sequence[e.Recorded],
) -> Context:
    """All of runs/plan.html."""
    document = plan.plan
    return {
        "run": heading(run, state),
        "plan": _plan(state, plan, reader),
        "versions": [_version(state, p, plan) for p in state.plans],
        "bases": [_base(state, p, plan, base) for p in state.plans if p.version < plan.version],
        "steps": plans.steps(state, plan, base),
        "base_label": plans.label(base),
        "arguments": [_arguments(step) for step in document.steps],
        "assumptions": assumed.of_plan(state, plan, log, reader.now),
        "promises": [p.text for p in document.promises],
        "claim": plan.claim or None,
    }


def _arguments(step: s.PlanStep) -> Context:
    """Every argument of a step; of one that waits, what it waits for and the runs that it starts."""
    if step.wait is not None:
        return {"waiting": waiting_steps.row(step, step.wait)}
    return {"step": step.title, "arguments": late.arguments(step)}


def _plan(state: s.RunState, plan: s.PlanVersion, reader: Reader) -> Context:
    request = latest_request(state, plan)
    found = {
        "version": plan.version,
        "digest": plan.digest,
        "at": plan.at,
        "goal_version": plan.plan.goal_version,
        **goal_versions.note_on(state, plan),
        "policy_version": plan.plan.policy_version,
        "state_note": plans.became(state, plan),
    }
    pending = request is not None and request.status is s.RequestStatus.PENDING
    hidden = hides(plan.plan)
    if pending and request and not why_not_decide(request, reader.person, reader.holders, hidden=hidden):
        found["review_url"] = reverse("plan-review", args=[state.identity.run, plan.version])
    return found


def _version(state: s.RunState, plan: s.PlanVersion, current: s.PlanVersion) -> Context:
    url = reverse("plan", args=[state.identity.run, plan.version])
    return {"version": plan.version, "url": url, "current": plan is current, "note": ""}


def _base(state: s.RunState, plan: s.PlanVersion, of: s.PlanVersion, base: s.PlanVersion | None) -> Context:
    url = f"{reverse('plan', args=[state.identity.run, of.version])}?base={plan.version}"
    return {"label": f"v{plan.version}", "url": url, "current": plan is base}
