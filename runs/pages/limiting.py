"""What one more constraint would do to a run, before it is added; and what confirming an inferred one means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.rights import Right
from approvals.expressions import NAMES
from runs.limits import LONGEST_CONSTRAINT_NAME, LONGEST_TEXT
from runs.machine import decide
from runs.machine import state as s
from runs.models import Run
from runs.pages import parts, revising, words
from runs.pages.run_page import Reader, heading
from runs.pages.stopping import may

Context = dict[str, Any]


def adding(run: Run, state: s.RunState, reader: Reader) -> Context:
    """All of runs/add_constraint.html but what a sent form adds."""
    impact = decide.limit_impact(state)
    return {
        "run": heading(run, state),
        "number": f"C-{len(state.constraints) + 1}",
        "impact": list(impact_lines(state, impact)),
        "impact_digest": impact.digest,
        "names": [{"name": name, "text": text} for name, text in NAMES.items()],
        "limits": {"name": LONGEST_CONSTRAINT_NAME, "text": LONGEST_TEXT, "reason": LONGEST_TEXT},
        "over": _over(state),
        **may("may_add", Right.REVISE_GOALS, reader),
        "values": {},
        "errors": [],
    }


def _over(state: s.RunState) -> str:
    match decide.cannot_limit(state):
        case "":
            return ""
        case "over" if state.successor:
            facts = {"run": state.successor}
            return _("This run is over: %(run)s goes on with its goal. Add the constraint there.") % facts
        case "over":
            return _("This run is over, so nothing is done that a constraint could limit.")
        case _:
            return _("The end of this run was asked for. What it undoes is limited by no constraint.")


def impact_lines(state: s.RunState, impact: decide.LimitImpact) -> Iterator[str]:
    """What ends with the constraint, and what stays, as sentences."""
    facts = {"plan": impact.plan}
    if impact.plan is None:
        yield _("No plan is in force: the agent makes the next one under this constraint too.")
    elif impact.at_once:
        yield (
            _(
                "Plan v%(plan)d loses its validity at once, and the agent makes another under this constraint too."
            )
            % facts
        )
    else:
        yield (
            _("Nothing more is sent on plan v%(plan)d. It loses its validity once what it began is settled.")
            % facts
        )
    if state.request and impact.request:
        yield _voided(state.request)
    yield from revising.settled_first(state)
    for child in state.open_children:
        facts_ = {"run": child.run}
        yield (
            _("%(run)s goes on under the constraints that it accepted: this one does not reach it.") % facts_
        )
    for reason in state.reasons:
        yield _("Still needs a person afterwards: %(reason)s.") % {"reason": words.reason(reason)}
    yield _("What was done stays as it is.")


def _voided(request: s.Request) -> str:
    given = [d.name for d in request.decisions if d.verdict == "approve"]
    facts = {"plan": request.version, "names": words.joined(given)}
    if given:
        return _("What %(names)s approved of plan v%(plan)d is voided.") % facts
    return _("The request to approve plan v%(plan)d is voided.") % facts


def confirming(run: Run, state: s.RunState, constraint: s.Constraint, reader: Reader) -> Context:
    """All of runs/confirm_constraint.html but what a sent form adds."""
    seen = next((o for o in state.observations.values() if o.number == constraint.observed), None)
    rows = parts.constraints(state, reader.person, reader.holders)
    row = next(x for x in rows if x["id"] == f"C-{constraint.number}")
    return {
        "run": heading(run, state),
        "constraint": row,
        "observation": {
            "id": f"O-{seen.number}",
            "url": f"{reverse('run', args=[run.pk])}#observation-O-{seen.number}",
            "resource": seen.resource,
            "value": seen.value,
            "at": seen.observed_at,
        }
        if seen
        else None,
        "over": _settled(state, constraint),
        **may("may_confirm", Right.OPERATE_RUNS, reader),
        "values": {},
        "errors": [],
    }


def _settled(state: s.RunState, constraint: s.Constraint) -> str:
    """Why there is nothing to confirm; empty where there is."""
    if constraint.confirmed:
        facts = {"name": constraint.confirmed.by.name, "at": words.moment(constraint.confirmed.at)}
        return _("%(name)s confirmed it at %(at)s.") % facts
    if constraint.term.source_kind != s.INFERRED:
        return _("It was not inferred by the agent, so there is nothing to confirm.")
    if constraint.withdrawn:
        return _("It was withdrawn for this run.")
    return _("This run is over.") if state.state in s.TERMINAL else ""
