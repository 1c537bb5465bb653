"""state + what was asked + facts -> the events that follow, or a refusal. Pure: `now` is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from runs.machine import events as e
from runs.machine import safety
from runs.machine import state as s
from runs.machine.canonical import canonical, digest, idempotency_key, parse, round_suffix
from runs.machine.revalidate import Facts, failed, report
from runs.machine.transitions import Decision, Refused, allowed_decisions, allows

Events = tuple[e.Event, ...]
REPLANS_IN_A_ROW = 3
BACK_OFF_FIRST = timedelta(seconds=1)
FAILURES_BEFORE_HUMAN = 5


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """What the policy asks for: how many people with which right, and for how long that stands."""

    needed: int
    right: str
    stands_for: timedelta
    policy_version: str
    excluded: dict[str, str] = {}  #: person id -> the rule that keeps this person from deciding


class ConclusionRefused(Exception):
    """This conclusion about an effect cannot be recorded; `condition` says which rule fails, nothing
    changed.
    """

    def __init__(self, condition: str) -> None:
        self.condition = condition
        super().__init__(condition)


def constraints_digest(state: s.RunState) -> str:
    """One digest over the constraints in force."""
    return digest(
        "constraints", canonical([[c.number, msgspec.to_builtins(c.term)] for c in state.constraints])
    )


def plan_document(plan: s.PlanDocument) -> str:
    """The canonical text of a plan: reviewed, digested and executed as it is."""
    return canonical(msgspec.to_builtins(plan))


def proposed(
    state: s.RunState,
    plan: s.PlanDocument,
    *,
    claim: str,
    requirement: Requirement,
    request: str,
    now: datetime,
) -> Events:
    """A validated plan becomes a version, and asks for approval where the policy says so."""
    if problems := _plan_problems(plan):
        return proposal_refused(state, problems)
    document = plan_document(plan)
    made = digest("plan", document)
    version = e.PlanProposed(version=plan.version, document=e.raw(document), digest=made, claim=claim)
    if requirement.needed == 0:
        policy = e.PlanApprovedByPolicy(
            version=plan.version, digest=made, policy_version=requirement.policy_version
        )
        return version, policy
    return version, requested(plan, made, requirement=requirement, request=request, now=now)


def proposal_refused(state: s.RunState, problems: tuple[str, ...]) -> Events:
    """What the planner proposed is not allowed: it is asked again, a few times, then a person."""
    if state.failures + 1 >= FAILURES_BEFORE_HUMAN:
        return human("planner_refused", evidence="; ".join(problems))
    return (e.ProposalRefused(problems=problems),)


def requested(
    plan: s.PlanDocument, plan_digest: str, *, requirement: Requirement, request: str, now: datetime
) -> e.ApprovalRequested:
    """A request for people's approval, with everything it is bound to."""
    expires_at = now + requirement.stands_for
    conditions = _conditions(plan, plan_digest, requirement, expires_at)
    return e.ApprovalRequested(
        request=request, version=plan.version, digest=plan_digest, conditions=e.raw(conditions),
        conditions_digest=digest("conditions", conditions), needed=requirement.needed, right=requirement.right,
        policy_version=requirement.policy_version, expires_at=expires_at, excluded=requirement.excluded,
    )  # fmt: skip


def _conditions(
    plan: s.PlanDocument, plan_digest: str, requirement: Requirement, expires_at: datetime
) -> str:
    rests = {r.resource: r.version for step in plan.steps for r in step.rests_on}
    return canonical(
        {
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


def attempt_failed(state: s.RunState, *, what: str, detail: str, reason: str, now: datetime) -> Events:
    """Something without effect did not work: again after a back-off, a few times, then a person."""
    if state.failures + 1 >= FAILURES_BEFORE_HUMAN:
        return (e.HumanNeeded(reasons=(e.Reason(code=reason, subject=what, evidence=detail),)),)
    retry_at = now + BACK_OFF_FIRST * 2**state.failures
    return (e.AttemptFailed(what=what, detail=detail, retry_at=retry_at),)


def human(code: str, *, subject: str = "", evidence: str = "") -> Events:
    """The run stops for a person."""
    return (e.HumanNeeded(reasons=(e.Reason(code=code, subject=subject, evidence=evidence),)),)


def found_open(state: s.RunState) -> Events:
    """What a new holder knows of effects that an earlier one left in flight: nothing."""
    found: Events = ()
    for effect in state.open_effects:
        if effect.status is s.EffectStatus.IN_FLIGHT:
            found += _left_open(effect)
    return found


def _left_open(effect: s.Effect) -> Events:
    """From outside "not yet called" and "called, no receipt" look the same, unless the tool marks its dispatch."""
    if effect.terms.blind and effect.dispatched_seq is None:
        return (e.EffectUnsent(effect=effect.number),)
    unknown = e.OutcomeUnknown(effect=effect.number, detail="its holder is gone and stored no receipt")
    return (unknown, *_blind_stops(effect))


def _blind_stops(effect: s.Effect) -> Events:
    """Nobody can be asked about a blind effect, and sending again may do it twice: a person, at once."""
    if not effect.terms.blind:
        return ()
    why = "it can be neither asked about nor sent again"
    return human("effect_unknown", subject=f"E-{effect.number}", evidence=why)


#: check -> the reason of needs_human that its failure is. Those that are not here lead elsewhere.
_HUMAN_REASONS = {
    "log": "log_damaged", "schema": "schema_incompatible", "code": "version_unavailable",
    "deadline": "deadline_passed", "constraints": "constraint_withdrawn", "plan": "log_damaged",
    "authority": "authority_lost",
}  # fmt: skip
_REPLAN = frozenset({"goal", "policy", "resources", "observations", "assumptions"})


def revalidated(
    state: s.RunState, facts: Facts, *, requirement: Requirement | None, request: str, now: datetime
) -> Events:
    """The report and what follows from it: the first failure in the order of the checks decides."""
    checks = report(state, facts, now)
    lost = failed(checks)
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
    first = lost[0]
    if first.name in _HUMAN_REASONS:
        return (e.HumanNeeded(reasons=_reasons(lost)),)
    if first.name == "cancel":
        return (e.CancelBegan(),)
    if first.name == "effects":
        return found_open(state)
    if first.name == "approval":
        return (e.ApprovalExpired(request=state.requests[-1].id, version=state.requests[-1].version),)
    if first.name == "approvers":
        return _approvers_lost(state, lost, facts, requirement, request, now)
    return _replan(state, lost)


def _reasons(lost: tuple[e.Check, ...]) -> tuple[e.Reason, ...]:
    """All failures that a person has to deal with; the order of the reasons decides among them."""
    found: dict[str, e.Reason] = {}
    for check in lost:
        if code := _HUMAN_REASONS.get(check.name):
            found.setdefault(code, e.Reason(code=code, subject=check.subject, evidence=check.now))
    return tuple(found.values())


def causes(lost: Sequence[e.Check], names: frozenset[str]) -> tuple[e.Cause, ...]:
    """Failed checks as causes: what changed, from what to what."""
    return tuple(
        e.Cause(what=c.name, subject=c.subject, was=c.was, now=c.now) for c in lost if c.name in names
    )


def _approvers_lost(
    state: s.RunState,
    lost: tuple[e.Check, ...],
    facts: Facts,
    requirement: Requirement | None,
    request: str,
    now: datetime,
) -> Events:
    """The approval is void. The same plan version waits again, where anybody is left who may approve it."""
    assert state.plan is not None
    who = tuple(c for c in lost if c.name == "approvers" and c.subject != "quorum")
    voided = e.ApprovalVoided(
        request=state.requests[-1].id,
        version=state.plan.version,
        causes=causes(who, frozenset({"approvers"})),
    )
    if requirement is None or not facts.others_may_approve:
        return voided, *human(
            "authority_lost", subject=f"v{state.plan.version}", evidence="nobody may approve it"
        )
    again = requested(state.plan.plan, state.plan.digest, requirement=requirement, request=request, now=now)
    return voided, again


def _replan(state: s.RunState, lost: tuple[e.Check, ...]) -> Events:
    unread = next((c for c in lost if c.unread), None)
    if unread and not any(c.name == "resources" for c in lost):
        return human("observation_stale", subject=unread.subject, evidence=unread.now)
    why = causes(lost, _REPLAN)
    if state.replans + 1 >= REPLANS_IN_A_ROW:
        changed = why[0]
        evidence = f"{changed.was} -> {changed.now}"
        return human("resource_changed", subject=changed.subject, evidence=evidence)
    assert state.plan is not None
    return (e.PlanVoided(version=state.plan.version, causes=why),)


def expired(state: s.RunState, now: datetime) -> Events:
    """A pending request whose time is over."""
    request = state.request
    if request is None or request.status is not s.RequestStatus.PENDING or now < request.expires_at:
        return ()
    return (e.ApprovalExpired(request=request.id, version=request.version),)


def next_send(
    state: s.RunState,
    *,
    terms: e.Terms,
    account: str,
    sender: e.Sender,
    now: datetime,
    senders_gone: bool = False,
) -> Events:
    """The send of the next step, or what stands in its way. Raises Refused where no step is left."""
    if state.state is not s.State.EXECUTING or not state.remaining or state.plan is None:
        raise Refused(state.state, "EffectIntended")
    step = state.remaining[0]
    round_ = state.rounds.get(step.name, 0)
    operation_id = round_suffix(step.operation_id, round_)
    if known := state.by_operation(step.system, operation_id):
        safe = safety.may_resend(known, now, senders_gone=senders_gone)
        return _send_again(state, known, step, sender, safe)
    key = idempotency_key(
        run_id=state.identity.run, step=step.name, arguments=_bound_arguments(step), round_=round_
    )
    intent = e.EffectIntended(
        effect=len(state.effects) + 1, step=step.name, tool=step.tool, system=step.system, account=account,
        operation_id=operation_id, key=key, round=round_, arguments=e.raw(step.arguments),
        arguments_digest=step.arguments_digest, plan_version=state.plan.version, terms=terms, sender=sender,
    )  # fmt: skip
    return (intent,)


def _bound_arguments(step: s.PlanStep) -> str:
    """The canonical arguments that a key is of: without those that the tool calls volatile."""
    if not step.volatile:
        return step.arguments
    return canonical({k: v for k, v in parse(step.arguments).items() if k not in step.volatile})


def _send_again(
    state: s.RunState, effect: s.Effect, step: s.PlanStep, sender: e.Sender, safe: bool
) -> Events:
    """The operation id is known to this run: answered from its receipt, or sent again under the same key."""
    name = f"E-{effect.number}"
    if effect.arguments_digest != step.arguments_digest:
        evidence = f"{effect.arguments} -> {step.arguments}"
        return human("effect_conflict", subject=name, evidence=evidence)
    if effect.status is s.EffectStatus.CONFIRMED:
        plan = state.plan.version if state.plan else 0
        return (e.EffectAnswered(step=step.name, effect=effect.number, plan_version=plan),)
    receipt = effect.receipt
    if receipt is None or receipt.source == "call":
        return human("tool_failed", subject=name, evidence=receipt.detail if receipt else "")
    if receipt.by_person or receipt.source == "mark" or safe:
        return (e.EffectSent(effect=effect.number, sender=sender),)
    unknown = e.OutcomeUnknown(effect=effect.number, detail="its key is no longer honoured")
    return unknown, *human("effect_unknown", subject=name, evidence="its key is no longer honoured")


def resend_unknown(state: s.RunState, number: int, *, sender: e.Sender, now: datetime) -> Events:
    """An unknown effect that cannot be asked about but whose key is honoured: sent again under it, or a person."""
    effect = state.effects[number]
    if effect.terms.blind or now >= safety.patience_ends(effect) or not safety.may_resend(effect, now):
        why = effect.unknown_detail or "no receipt came"
        return human("effect_unknown", subject=f"E-{number}", evidence=why)
    return (e.EffectSent(effect=number, sender=sender),)


def dispatched(state: s.RunState, number: int) -> Events:
    """The mark just before a blind tool's call; nothing for the others."""
    return (e.EffectDispatched(effect=number),) if state.effects[number].terms.blind else ()


def occupied(state: s.RunState, *, holder: str, status: str) -> Events:
    """Another run of the tenant holds the operation id: nothing is sent."""
    step = state.remaining[0]
    return human(
        "effect_conflict", subject=step.name, evidence=f"{step.operation_id} is {status} in {holder}"
    )


def executed(
    state: s.RunState,
    effect: int,
    *,
    reference: str,
    evidence: str,
    problem: str | None,
    versions: dict[str, str],
) -> Events:
    """The call was answered: done. `problem` is the postcondition that does not hold."""
    receipt = e.ReceiptStored(
        effect=effect, executed=True, reference=reference, evidence=e.raw(evidence), source="call",
        failed=problem, versions=versions,
    )  # fmt: skip
    return _receipt(state, receipt, _failed_postcondition(effect, problem))


def refused_call(state: s.RunState, effect: int, *, detail: str, evidence: str) -> Events:
    """The call was answered: definitely not done. Trying it again is a new round, by a person's decision."""
    receipt = e.ReceiptStored(
        effect=effect, executed=False, reference="", evidence=e.raw(evidence), source="call", detail=detail
    )
    return _receipt(state, receipt, human("tool_failed", subject=f"E-{effect}", evidence=detail))


def _failed_postcondition(effect: int, problem: str | None) -> Events:
    return human("postcondition_failed", subject=f"E-{effect}", evidence=problem) if problem else ()


def _receipt(state: s.RunState, receipt: e.ReceiptStored, then: Events) -> Events:
    """Evidence moves the run where the effect is open and the table lets it; it is kept in every other case."""
    effect = state.effects[receipt.effect]
    if effect.status in s.OPEN_EFFECT and allows(state.state, e.ReceiptStored):
        return receipt, *then
    executed_before = effect.receipt.executed if effect.receipt else None
    contradicts = executed_before is not None and executed_before != receipt.executed
    kept = e.EvidenceKept(
        effect=receipt.effect, executed=receipt.executed, reference=receipt.reference, evidence=receipt.evidence,
        source=receipt.source, contradicts=contradicts,
    )  # fmt: skip
    return (kept, *_contradicted(state, receipt, contradicts))


def _contradicted(state: s.RunState, receipt: e.ReceiptStored, contradicts: bool) -> Events:
    if not contradicts or state.state in s.TERMINAL:
        return ()
    return human(
        "effect_conflict", subject=f"E-{receipt.effect}", evidence=receipt.reference or receipt.detail
    )


def ambiguous(state: s.RunState, effect: int, *, detail: str, evidence: str) -> Events:
    """The call ended without a clear answer: the outcome is unknown."""
    if state.effects[effect].status is s.EffectStatus.IN_FLIGHT and allows(state.state, e.OutcomeUnknown):
        unknown = e.OutcomeUnknown(effect=effect, detail=detail, evidence=e.raw(evidence))
        return (unknown, *_blind_stops(state.effects[effect]))
    return (
        e.EvidenceKept(
            effect=effect, executed=None, reference=detail, evidence=e.raw(evidence), source="call",
            contradicts=False,
        ),
    )  # fmt: skip


def _queried(
    effect: s.Effect, answer: safety.Answered, evidence: str, next_at: datetime | None
) -> e.EffectQueried:
    return e.EffectQueried(
        effect=effect.number, failure=answer.failure, matches=answer.matches, account=answer.account,
        evidence=e.raw(evidence), boot=answer.boot, uptime=answer.uptime, next_at=next_at,
    )  # fmt: skip


def asked_by_person(state: s.RunState, effect: int, answer: safety.Answered, *, evidence: str) -> Events:
    """A person asked: the answer is evidence, the conclusion is the person's."""
    if not allows(state.state, e.EffectQueried) or state.effects[effect].status is not s.EffectStatus.UNKNOWN:
        raise Refused(state.state, "EffectQueried")
    return (_queried(state.effects[effect], answer, evidence, state.effects[effect].next_ask_at),)


def asked(
    state: s.RunState,
    number: int,
    answer: safety.Answered,
    *,
    evidence: str,
    problem: str | None,
    now: datetime,
    senders_gone: bool = False,
) -> Events:
    """A worker asked: the answer, and what follows from it by the table. `problem` as in `executed`."""
    effect = state.effects[number]
    says = safety.verdict(effect, answer, now)
    queried = _queried(effect, answer, evidence, says.ask_at)
    seq = state.seq + 1
    match says.kind:
        case safety.Kind.ASK_AGAIN:
            return (queried,)
        case safety.Kind.RECEIPT if says.match:
            receipt = e.ReceiptStored(
                effect=number, executed=True, reference=says.match.reference, evidence=e.raw(evidence),
                source="query", asked=seq, failed=problem,
            )  # fmt: skip
            return queried, receipt, *_failed_postcondition(number, problem)
        case safety.Kind.NOT_EXECUTED if safety.may_resend(effect, now, senders_gone=senders_gone):
            return queried, e.EffectReconciled(
                effect=number, happened=False, asked=seq, reference="", note=""
            )
        case safety.Kind.CONFLICT:
            return queried, *human("effect_conflict", subject=f"E-{number}", evidence=says.why)
        case _:
            return queried, *human("effect_unknown", subject=f"E-{number}", evidence=says.why)


def conclusion_conditions(effect: s.Effect, ask: s.Ask | None, now: datetime) -> dict[str, str]:
    """For each conclusion a person may draw from an answer: empty where it may, else the condition that
    fails.
    """
    if ask is None or ask.seq < effect.last_send.seq:
        return {"happened": "not_asked", "not_happened": "not_asked"}
    if ask.failure is not None:
        return {"happened": "no_answer", "not_happened": "no_answer"}
    return {"happened": _may_have_happened(effect, ask), "not_happened": _may_not_have(effect, ask)}


def _may_have_happened(effect: s.Effect, ask: s.Ask) -> str:
    if len(ask.matches) != 1:
        return "no_match" if not ask.matches else "several_matches"
    if safety.difference(effect, ask.matches[0]):
        return "differs"
    return "" if ask.matches[0].final else "pending"


def _may_not_have(effect: s.Effect, ask: s.Ask) -> str:
    if ask.matches:
        return "match"
    if ask.account != effect.account:
        return "other_account"
    return "" if ask.at >= effect.settled_at else "too_early"


def concluded(
    state: s.RunState, number: int, *, happened: bool, asked_seq: int, note: str, now: datetime
) -> Events:
    """A person's conclusion from the outside's answer at `asked_seq`. Raises ConclusionRefused, Refused."""
    effect = state.effects[number]
    if effect.status is not s.EffectStatus.UNKNOWN or not allows(state.state, e.EffectReconciled):
        raise Refused(state.state, "EffectReconciled")
    ask = next((a for a in effect.asks if a.seq == asked_seq), None)
    condition = conclusion_conditions(effect, ask, now)["happened" if happened else "not_happened"]
    if condition or ask is None:
        raise ConclusionRefused(condition)
    reference = ask.matches[0].reference if happened else ""
    return (
        e.EffectReconciled(effect=number, happened=happened, asked=asked_seq, reference=reference, note=note),
    )


def finished(state: s.RunState) -> Events:
    """Every step is done: the run succeeds, unless something that it promised is still open."""
    if state.remaining or state.open_effects:
        raise Refused(state.state, "RunSucceeded")
    if state.open_obligations:
        return human("obligation_open", evidence="; ".join(o.text for o in state.open_obligations))
    return (e.RunSucceeded(),)


def cancel(state: s.RunState, *, note: str) -> Events:
    """A person ends the run: now where nothing is open, else as soon as that is settled."""
    if not allows(state.state, e.CancelRequested) or state.cancel_requested:
        raise Refused(state.state, "CancelRequested")
    return e.CancelRequested(note=note), *begin_cancel(state)


def begin_cancel(state: s.RunState) -> Events:
    """The safe point: nothing is in flight or unknown."""
    return (e.CancelBegan(),) if allows(state.state, e.CancelBegan) and not state.open_effects else ()


def finish_cancel(state: s.RunState) -> Events:
    """The run ends; what it still owes is handed to a person."""
    return (e.RunCancelled(obligations=tuple(o.number for o in state.open_obligations)),)


def decided(state: s.RunState, decision: Decision, *, note: str) -> Events:
    """A person's decision in `needs_human`: one that all reasons allow. Raises Refused for any other."""
    if state.state is not s.State.NEEDS_HUMAN or decision not in allowed_decisions(state.reasons):
        raise Refused(state.state, decision.value)
    match decision:
        case Decision.REPLAN:
            return (e.ReplanOrdered(note=note),)
        case Decision.RETRY:
            return (e.RunResumed(decision=decision.value, note=note, raised=_refused_steps(state)),)
        case Decision.RESUME:
            return (e.RunResumed(decision=decision.value, note=note),)
        case _:
            raise Refused(state.state, decision.value)


def _refused_steps(state: s.RunState) -> tuple[str, ...]:
    """Steps whose latest effect was definitely refused: a new round may do them."""
    refused = {
        x.step
        for x in state.effects.values()
        if x.status is s.EffectStatus.NOT_EXECUTED and x.receipt and x.receipt.source == "call"
    }
    return tuple(step.name for step in state.remaining if step.name in refused)
