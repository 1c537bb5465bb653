"""Plans and the requests for their approval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from runs.machine import constraints
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical, digest
from runs.machine.decide.common import FAILURES_BEFORE_HUMAN, READS_IN_A_ROW, Events, human
from runs.machine.expiry import announced_from
from runs.machine.transitions import Refused, allows


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """What the policy asks for: how many people with which right, and for how long that stands."""

    needed: int
    right: str
    stands_for: timedelta
    policy_version: str
    excluded: dict[str, str] = {}  #: person id -> the rule that keeps this person from deciding
    quorums: tuple[e.Quorum, ...] = ()
    unpassed: tuple[e.Unpassed, ...] = ()  #: checks that the plan does not pass
    not_by: tuple[str, ...] = ()  #: parties that are looked up whenever it counts


def personally(state: s.RunState, requirement: Requirement) -> Requirement:
    """As asked for; after authority was lent anew by at least one person, whatever the policy says."""
    if not state.reenters or requirement.needed:
        return requirement
    return msgspec.structs.replace(requirement, needed=1)


def constraints_digest(state: s.RunState) -> str:
    """One digest over the constraints in force."""
    return constraints.constraints_digest(state.constraints)


def plan_document(plan: s.PlanDocument) -> str:
    """The canonical text of a plan: reviewed, digested and executed as it is."""
    document = msgspec.to_builtins(plan)
    for step in document["steps"]:
        if not step["sensitive"]:
            del step["sensitive"]
    for assumption in document["assumptions"]:
        if not assumption["constraints"]:
            del assumption["constraints"]
    return canonical(document)


def proposed(
    state: s.RunState,
    plan: s.PlanDocument,
    *,
    claim: str,
    requirement: Requirement,
    request: str,
    now: datetime,
    takes: tuple[int, ...] = (),
) -> Events:
    """A validated plan becomes a version, and asks for approval where the policy says so."""
    if problems := _plan_problems(plan):
        if plan.undo:
            return human("compensation_failed", evidence="; ".join(problems))
        return proposal_refused(state, problems)
    document = plan_document(plan)
    made = digest("plan", document)
    version = e.PlanProposed(
        version=plan.version, document=e.raw(document), digest=made, claim=claim, takes=takes
    )
    if requirement.needed == 0:
        policy = e.PlanApprovedByPolicy(
            version=plan.version, digest=made, policy_version=requirement.policy_version
        )
        return version, policy
    return version, requested(state, plan, made, requirement=requirement, request=request, now=now)


def read(state: s.RunState, event: e.ObservationRecorded) -> Events:
    """What the planner wanted to know was read. One that only ever reads makes no plan: then a person."""
    if state.reads < READS_IN_A_ROW:
        return (event,)
    evidence = f"it read {state.reads} times and proposed no plan"
    return event, *human("planner_refused", evidence=evidence)


def reread(state: s.RunState, event: e.ObservationReread) -> Events:
    """A person had something read once more. Raises Refused where the run is over, or never read it."""
    known = (event.tool, e.text_of(event.arguments)) in state.observations
    if not known or not allows(state.state, e.ObservationReread):
        raise Refused(state.state, e.ObservationReread.__name__)
    return (event,)


def proposal_refused(
    state: s.RunState, problems: tuple[str, ...], broken: tuple[e.Broken, ...] = ()
) -> Events:
    """What the planner proposed is not allowed: it is asked again, a few times, then a person. That a constraint kept
    it from something is recorded each time.
    """
    refused = e.ProposalRefused(problems=problems, broken=broken)
    if state.failures + 1 < FAILURES_BEFORE_HUMAN:
        return (refused,)
    stops = human("planner_refused", evidence="; ".join(problems))
    return (refused, *stops) if broken else stops


def requested(
    state: s.RunState,
    plan: s.PlanDocument,
    plan_digest: str,
    *,
    requirement: Requirement,
    request: str,
    now: datetime,
) -> e.ApprovalRequested:
    """A request for people's approval, with everything it is bound to."""
    expires_at = now + requirement.stands_for
    text = conditions(plan, plan_digest, requirement, expires_at, rounds_of(state, plan))
    return e.ApprovalRequested(
        request=request, version=plan.version, digest=plan_digest, conditions=e.raw(text),
        conditions_digest=digest("conditions", text), needed=requirement.needed, right=requirement.right,
        policy_version=requirement.policy_version, expires_at=expires_at, excluded=requirement.excluded,
        quorums=requirement.quorums, not_by=requirement.not_by, unpassed=requirement.unpassed,
        announce_at=announced_from(now, expires_at),
    )  # fmt: skip


def rounds_of(state: s.RunState, plan: s.PlanDocument) -> dict[str, int]:
    """The rounds in which the plan's steps are to be done, of those that are not in their first."""
    return {x.name: round_ for x in plan.steps if x.wait is None and (round_ := state.round_of(x))}


def conditions(
    plan: s.PlanDocument,
    plan_digest: str,
    requirement: Requirement,
    expires_at: datetime,
    rounds: Mapping[str, int],
) -> str:
    """The canonical text of all that an approval of the plan is bound to. Of the rounds, those after the first."""
    rests = {r.resource: r.version for step in plan.steps for r in step.rests_on}
    later = {"rounds": dict(rounds)} if rounds else {}
    # Left out where a policy has none, so that what was asked before there were any is still the same.
    asked = {"quorums": msgspec.to_builtins(requirement.quorums), "not_by": list(requirement.not_by)}
    return canonical(
        {
            **later,
            **{name: value for name, value in asked.items() if value},
            "plan_version": plan.version,
            "plan_digest": plan_digest,
            "goal_version": plan.goal_version,
            "constraints_digest": plan.constraints_digest,
            "arguments_digests": [step.arguments_digest for step in plan.steps],
            "resource_versions": rests,
            "policy_version": requirement.policy_version,
            "needed": requirement.needed,
            "right": requirement.right,
            "excluded": requirement.excluded,
            "expires_at": expires_at.isoformat(),
        }
    )


def _plan_problems(plan: s.PlanDocument) -> tuple[str, ...]:
    """What no plan may have: no steps, two steps of one name, two equal operation ids in one system."""
    names = [step.name for step in plan.steps]
    ids = [(step.system, step.operation_id) for step in plan.steps]
    problems = [f"two steps are called {name}" for name in sorted({n for n in names if names.count(n) > 1})]
    problems += [
        f"two steps are {i} in {system}" for system, i in sorted({x for x in ids if ids.count(x) > 1})
    ]
    return tuple(problems) if plan.steps else ("the plan has no steps",)


def ask_anew(state: s.RunState, *, requirement: Requirement, request: str, now: datetime) -> Events:
    """The latest plan version asks for approval once more, of one person at least. Nothing where none of it is left."""
    plan = state.plan
    if plan is None or not state.remaining:
        return ()
    asks = msgspec.structs.replace(requirement, needed=max(requirement.needed, 1))
    return (requested(state, plan.plan, plan.digest, requirement=asks, request=request, now=now),)


def rounds_changed(state: s.RunState, *, requirement: Requirement, request: str, now: datetime) -> Events:
    """A pending request for a round that is over by now is void, and people are asked about the round to come."""
    causes = tuple(
        e.Cause(what="rounds", subject=x.name, was=str(state.approved_round(x)), now=str(state.round_of(x)))
        for x in state.uncovered
    )
    return pending_voided(state, causes, ask_anew(state, requirement=requirement, request=request, now=now))


def lapsed(state: s.RunState, lost: Iterable[tuple[str, str]], again: Events) -> Events:
    """A pending request is void where somebody who approved may not any more (`lost`: name and why), and people are
    asked anew (`again`): what is approved later would be added to what does not count.
    """
    causes = tuple(e.Cause(what="approvers", subject=name, was="", now=why) for name, why in lost)
    return pending_voided(state, causes, again)


def pending_voided(state: s.RunState, causes: tuple[e.Cause, ...], again: Events) -> Events:
    """The pending request ends because of `causes`; nothing where there are none, or no request is pending."""
    asked = state.request
    if not causes or asked is None or asked.status is not s.RequestStatus.PENDING:
        return ()
    return e.ApprovalVoided(request=asked.id, version=asked.version, causes=causes), *again


def taken_back(state: s.RunState, made: e.ApprovalTakenBack, again: Events) -> Events:
    """An approval was taken back. What it allowed asks anew (`again`), at once where nothing is in flight or unknown;
    else once that is settled, as the revalidation before the next send finds it.
    """
    asks = state.state in (s.State.WAITING_APPROVAL, s.State.APPROVED, *s.SENDING)
    return (made, *again) if asks and not state.open_effects else (made,)


def policy_changed(state: s.RunState, policy_version: str) -> Events:
    """A plan that waits for approval was judged by another policy than the one in force: it is planned anew."""
    plan = state.plan
    if plan is None or plan.voided_seq is not None or plan.plan.policy_version == policy_version:
        return ()
    if state.state is not s.State.WAITING_APPROVAL:
        return ()
    cause = e.Cause(what="policy", subject="", was=plan.plan.policy_version, now=policy_version)
    return (e.PlanVoided(version=plan.version, causes=(cause,)),)
