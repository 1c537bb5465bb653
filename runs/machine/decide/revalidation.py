"""What follows from a revalidation: the first failure in the order of the checks decides, all reasons are kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.decide.common import REPLANS_IN_A_ROW, Events, human
from runs.machine.decide.constraints import told
from runs.machine.decide.lending import lent_anew
from runs.machine.decide.plans import Requirement, ask_anew
from runs.machine.decide.sends import found_open
from runs.machine.projection import PROJECTED
from runs.machine.revalidate import REENTRY, Facts, failed, report
from runs.machine.transitions import NO_APPROVER

#: What became of a constraint -> the reason that it is; where its source could not be asked, that of the check.
_CONSTRAINTS = {"withdrawn": "constraint_withdrawn", "amended": "constraint_amended"}
#: check -> the reason of needs_human that its failure is. Those that are not here lead elsewhere.
_HUMAN_REASONS = {
    "log": "log_damaged", "schema": "schema_incompatible", "code": "version_unavailable",
    "deadline": "deadline_passed", "constraints": "observation_stale", "plan": "log_damaged",
    "authority": "authority_lost", "budget": "budget_exhausted",
}  # fmt: skip
_REPLAN = frozenset({"goal", "policy", "resources", "observations", "assumptions"})
#: The approval is void and the plan is not: it is asked for anew.
_ENDS_APPROVAL = frozenset({"approvers", "rounds"})
#: The causes of a void plan: an approver who was lost is named too, where both came together.
_VOIDS_PLAN = _REPLAN | {"approvers"}


def projected_anew(state: s.RunState) -> Events:
    """The rows beside the log are made anew where another version of the reducer made them; nothing else moves."""
    if state.projected == PROJECTED:
        return ()
    return (e.ProjectionRebuilt(was=state.projected, now=PROJECTED),)


def revalidated(
    state: s.RunState, facts: Facts, *, requirement: Requirement | None, request: str, now: datetime
) -> Events:
    """The report and what follows from it: the first failure in the order of the checks decides."""
    checks = report(state, facts, now)
    lost = failed(checks, undoing=state.undoing)
    if not lost:
        return (e.RevalidationPassed(checks=checks),)
    refused = e.RevalidationRefused(checks=checks)
    return (refused, *_follows(state, lost, facts, requirement, request, now))


def _follows(
    state: s.RunState,
    lost: tuple[e.Check, ...],
    facts: Facts,
    requirement: Requirement | None,
    request: str,
    now: datetime,
) -> Events:
    reenters = [c for c in lost if c.name == "authority" and c.subject == REENTRY]
    first, *_ = lost = tuple(c for c in lost if c not in reenters) or lost
    if first in reenters:
        return _reentered(state, requirement, request, now)
    if first.name in _HUMAN_REASONS:
        return *told(state, facts.constraints_now), e.HumanNeeded(reasons=_reasons(lost))
    if first.name == "cancel":
        return (e.CancelBegan(),)
    if first.name == "effects":
        return found_open(state)
    if any(c.name in _REPLAN and not c.unread for c in lost):
        # Whoever is asked anew must not be asked about a plan that is not valid any more.
        return _replan(state, lost)
    if first.name == "approval" and state.approval_over and requirement:
        return ask_anew(state, requirement=requirement, request=request, now=now)
    if first.name == "approval":
        return (e.ApprovalExpired(request=state.requests[-1].id, version=state.requests[-1].version),)
    if first.name in _ENDS_APPROVAL:
        return _approval_lost(state, lost, facts, requirement, request, now)
    return _replan(state, lost)


def _reentered(state: s.RunState, requirement: Requirement | None, request: str, now: datetime) -> Events:
    """Authority was lent anew: a person approves the same plan again, although what was approved is as it was."""
    assert state.plan is not None
    if requirement is None:
        return human("authority_lost", subject=f"v{state.plan.version}", evidence=NO_APPROVER)
    asked = ask_anew(state, requirement=requirement, request=request, now=now)
    if state.request is None or state.request.status not in s.OPEN_REQUEST:
        return asked
    return lent_anew(state), *asked


def _reasons(lost: tuple[e.Check, ...]) -> tuple[e.Reason, ...]:
    """All failures that a person has to deal with; the order of the reasons decides among them."""
    found: dict[str, e.Reason] = {}
    for check in lost:
        if code := _CONSTRAINTS.get(check.became) or _HUMAN_REASONS.get(check.name):
            evidence = other_code(lost) if check.name == "code" else check.now
            found.setdefault(code, e.Reason(code=code, subject=check.subject, evidence=evidence))
    return tuple(found.values())


def other_code(lost: Sequence[e.Check]) -> str:
    """What of the code is not as recorded, from what to what."""
    return "; ".join(f"{c.subject}: {c.was} -> {c.now or 'none'}" for c in lost if c.name == "code")


def causes(lost: Sequence[e.Check], names: frozenset[str]) -> tuple[e.Cause, ...]:
    """Failed checks as causes: what changed, from what to what."""
    return tuple(
        e.Cause(what=c.name, subject=c.subject, was=c.was, now=c.now) for c in lost if c.name in names
    )


def _approval_lost(
    state: s.RunState,
    lost: tuple[e.Check, ...],
    facts: Facts,
    requirement: Requirement | None,
    request: str,
    now: datetime,
) -> Events:
    """The approval is void. The same plan version waits again, where anybody is left who may approve it."""
    assert state.plan is not None
    who = tuple(c for c in lost if c.subject != "quorum")
    voided = e.ApprovalVoided(
        request=state.requests[-1].id,
        version=state.plan.version,
        causes=causes(who, _ENDS_APPROVAL),
    )
    if requirement is None or not facts.others_may_approve:
        return voided, *human("authority_lost", subject=f"v{state.plan.version}", evidence=NO_APPROVER)
    return voided, *ask_anew(state, requirement=requirement, request=request, now=now)


def _replan(state: s.RunState, lost: tuple[e.Check, ...]) -> Events:
    unread = next((c for c in lost if c.unread), None)
    if unread and not any(c.name == "resources" for c in lost):
        return human("observation_stale", subject=unread.subject, evidence=unread.now)
    why = causes([c for c in lost if c.subject != "quorum"], _VOIDS_PLAN)
    if state.replans + 1 >= REPLANS_IN_A_ROW:
        changed = next(c for c in why if c.what in _REPLAN)
        evidence = f"{changed.was} -> {changed.now}"
        return human("resource_changed", subject=changed.subject, evidence=evidence)
    assert state.plan is not None
    return (e.PlanVoided(version=state.plan.version, causes=why),)
