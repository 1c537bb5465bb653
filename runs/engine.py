"""The loop: load, observe, propose, validate, persist intent, execute, persist receipt, reduce, repeat or
finish.

`advance` moves one run until it must stop. The outside is called here and in `recovery.ask`, never inside a
transaction, and a writing tool only after the transaction that holds its intent has committed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import msgspec
from django.conf import settings

from runs import (
    agents,
    artifacts,
    context,
    crash,
    facts,
    grants,
    inferring,
    late_values,
    planning,
    recovery,
    sources,
    summaries,
    telling,
    undoing,
    versions,
)
from runs.host import gone, sender, uptime
from runs.ledger import LeaseLost, RunChangedMeanwhile, SendRefused, foreseen
from runs.limits import LARGEST_INLINE, LARGEST_RESULT, LONGEST_NAME
from runs.machine import decide, expiry
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical, plain, round_suffix
from runs.machine.canonical import parse as parse_json
from runs.machine.constraints import Became
from runs.machine.late import Bindings
from runs.machine.revalidate import out_of_date
from runs.machine.safety import Kind, verdict
from runs.promising import promised
from runs.recovery import Held, Sending
from runs.tools import Ambiguous, Answer, Executed, ReadingTool, Refused, ToolError, WritingTool

log = logging.getLogger(__name__)


def advance(run_id: str) -> int:
    """Move the run as far as it can go by itself; how many events that made. 0: it was not ours to move."""
    held = recovery.claim(run_id)
    if held is None:
        return 0
    with held:
        crash.reach(run_id, crash.CLAIMED)
        try:
            while _step(held):
                pass
        except LeaseLost:
            log.warning("another worker holds the run now", extra={"run": run_id})
    return held.state.seq - held.first_seq


def _step(held: Held) -> bool:
    """One step; whether another may follow at once."""
    try:
        return _move(held)
    except RunChangedMeanwhile:
        held.reload()
        return True


def _move(held: Held) -> bool:
    state = held.state
    if any(effect.status is s.EffectStatus.IN_FLIGHT for effect in state.open_effects):
        held.decide(lambda state, now: decide.found_open(state))
        return True
    if state.cancel_requested and decide.begin_cancel(state):
        held.decide(lambda state, now: decide.begin_cancel(state))
        return True
    if decide.leave_outdated(state):
        held.decide(lambda state, now: decide.leave_outdated(state))
        return True
    if state.retry_at and state.retry_at > held.clock.now():
        return False
    return _by_state(held)


def _by_state(held: Held) -> bool:
    match held.state.state:
        case s.State.PLANNING:
            return _plan(held)
        case s.State.APPROVED:
            return _revalidate(held)
        case s.State.EXECUTING | s.State.COMPENSATING:
            return _execute(held)
        case s.State.WAITING:
            return _changed(
                held, lambda state, now: decide.wait_over(state, now) or expiry.recorded(state, now)
            )
        case s.State.UNKNOWN:
            return _ask(held)
        case s.State.WAITING_APPROVAL:
            return _changed(
                held,
                partial(_asked_too_long, held.agent, planning.policy_for(held.state, held.agent).version),
            )
        case s.State.CANCELLING:
            return _undo(held)
    return False


def _asked_too_long(agent: agents.Agent, policy: str, state: s.RunState, now: datetime) -> Sequence[e.Event]:
    """What ends a request by itself: authority, policy, grant or round are others now, or its time is over."""
    return (
        decide.authority_over(state, grants.still_lent(state)[0])
        or decide.policy_changed(state, policy)
        or _asked_under_another_grant(agent, state, now)
        or _asked_for_other_round(agent, state, now)
        or expiry.recorded(state, now)
    )


def _asked_under_another_grant(agent: agents.Agent, state: s.RunState, now: datetime) -> Sequence[e.Event]:
    """People were asked before authority was lent anew: they are asked again, under what was lent."""
    if state.plan is None or not state.asked_under_another:
        return ()
    asks = planning.requirement(state, agent, state.plan.plan)
    asked = decide.ask_anew(state, requirement=asks, request=str(uuid4()), now=now)
    return (decide.lent_anew(state), *asked) if asked else ()


def _asked_for_other_round(agent: agents.Agent, state: s.RunState, now: datetime) -> Sequence[e.Event]:
    if state.plan is None or not state.uncovered:
        return ()
    asks = planning.requirement(state, agent, state.plan.plan)
    return decide.rounds_changed(state, requirement=asks, request=str(uuid4()), now=now)


def _changed(held: Held, decider: recovery.Decider) -> bool:
    """Decide what may follow by itself; whether anything did."""
    before = held.state.seq
    held.decide(decider)
    return held.state.seq > before


def _undo(held: Held) -> bool:
    """Plan what is to be undone, or end the run where nothing is."""
    try:
        document = undoing.undo_document(held.state, held.agent) if held.state.undo_requested else None
    except Exception as error:
        # A tool is foreign code: where it cannot say how to undo, nothing was undone and a person decides.
        log.exception(
            "the plan that undoes could not be made", extra={"run": held.run.pk, "planner": held.agent.name}
        )
        failure = plain(f"{type(error).__name__}: {error}")
        held.decide(lambda state, now: decide.human("compensation_failed", evidence=failure))
        return False
    if document is None:
        held.decide(lambda state, now: decide.finish_cancel(state))
        return False
    if decide.disputed(held.state, document):
        held.decide(lambda state, now: decide.disputed(state, document))
        return False
    asks = planning.requirement(held.state, held.agent, document)
    held.decide(
        lambda state, now: decide.proposed(
            state, document, claim="", requirement=asks, request=str(uuid4()), now=now
        )
    )
    return True


def _plan(held: Held) -> bool:
    """Ask the planner and take what it proposes, if `validate` lets it."""
    parts = versions.recorded(held.agent)
    if decide.other_parts(held.state, parts):
        held.decide(lambda state, now: decide.other_parts(state, parts))
        return False
    facts.ask_sources(held.agent)
    now_stated = sources.standing(held.agent, held.state)
    if decide.marked(held.state, now_stated):
        held.decide(lambda state, now: decide.marked(state, now_stated))
        return False
    view = _context(held)
    if view is None:
        return True
    try:
        proposal = held.agent.planner.propose(view)
    except Exception as error:
        # A planner is foreign code or a model: whatever it raises, nothing happened and it is asked again.
        log.exception("the planner failed", extra={"run": held.run.pk, "planner": held.agent.name})
        failure = plain(f"{type(error).__name__}: {error}")
        held.decide(
            lambda state, now: decide.attempt_failed(
                state, what="planner", detail=failure, reason="planner_refused", now=now
            )
        )
        return True
    return _take(held, proposal)


def _context(held: Held) -> agents.View | None:
    """What the planner is given. None: it is not asked now, and an event says why."""
    agent, tenant = held.agent, held.state.identity.tenant
    try:
        return context.rebuilt(
            held.state, held.clock.now(), history=summaries.history_of(held.state, agent),
            budget=context.budget_of(agent), fetch=partial(artifacts.get, tenant),
        )  # fmt: skip
    except context.ContextTooLarge as error:
        evidence = plain(str(error))
        held.decide(lambda state, now: decide.human("planner_refused", subject="context", evidence=evidence))
    except artifacts.ArtifactUnreadable as error:
        failure = plain(str(error))
        held.decide(
            lambda state, now: decide.attempt_failed(
                state, what="context", detail=failure, reason="planner_refused", now=now
            )
        )
    return None


def _keep(held: Held, proposal: agents.Keep) -> None:
    """Keep a result of the planner. One that is kept already is not kept again: that would never end."""
    name, data = plain(str(proposal.name))[:LONGEST_NAME], plain(str(proposal.content)).encode()
    if not name.strip() or len(data) > LARGEST_RESULT:
        problem = f"a result needs a name and at most {LARGEST_RESULT} bytes; {name!r} has {len(data)}"
        held.decide(lambda state, now: decide.proposal_refused(state, (problem,)))
        return
    try:
        row = artifacts.put(tenant_id=held.run.tenant_id, data=data, media_type="text/plain")
    except artifacts.ArtifactNotKept as error:
        log.exception("a result could not be kept", extra={"run": held.run.pk})
        failure = plain(str(error))
        held.decide(
            lambda state, now: decide.attempt_failed(
                state, what="keep", detail=failure, reason="planner_refused", now=now
            )
        )
        return
    event = e.ArtifactKept(
        artifact=row.hash, name=name, kind="result", media_type="text/plain", size=row.size
    )
    held.decide(lambda state, now: decide.kept_result(state, event))


def _take(held: Held, proposal: object) -> bool:
    match proposal:
        case agents.Read():
            return _read(held, proposal)
        case agents.Keep():
            _keep(held, proposal)
        case agents.Plan():
            held.decide(lambda state, now: _proposed(held, proposal, state, now))
        case agents.Ask(question=question):
            held.decide(lambda state, now: decide.human("asked", evidence=plain(question)))
        case agents.Decline(reason=reason):
            held.decide(lambda state, now: decide.human("planner_refused", evidence=plain(reason)))
        case _:
            problem = f"a {type(proposal).__name__} is not a proposal"
            held.decide(lambda state, now: decide.proposal_refused(state, (problem,)))
    return True


def _proposed(held: Held, plan: agents.Plan, state: s.RunState, now: datetime) -> Sequence[e.Event]:
    if stopped := decide.stopped(state):
        return stopped
    found, problems = inferring.inferred(state, held.agent, plan, now)
    bound = decide.inferred(state, found)
    state = foreseen(state, bound, actor=held.actor, now=now)
    try:
        if problems:
            raise planning.ProposalInvalid(problems)
        document = planning.document(state, held.agent, plan, now)
    except planning.ProposalInvalid as error:
        return *bound, *decide.proposal_refused(state, error.problems, error.broken)
    asks = planning.requirement(state, held.agent, document)
    made = decide.proposed(
        state, document, claim=plain(plan.claim), takes=tuple(sorted(set(plan.takes))), requirement=asks,
        request=str(uuid4()), now=now,
    )  # fmt: skip
    return *bound, *made


def _read(held: Held, proposal: agents.Read) -> bool:
    """Read what the planner wants to know. A reading that is current is not repeated: that would never end."""
    try:
        tool = held.agent.reading(proposal.tool)
        arguments = canonical(tool.validate(proposal.arguments))
    except (KeyError, StopIteration, TypeError, ValueError, ToolError) as error:
        problem = plain(f"{proposal.tool}: {_told(held.agent, proposal, error)}")
        held.decide(lambda state, now: decide.proposal_refused(state, (problem,)))
        return True
    known = held.state.observations.get((proposal.tool, arguments))
    if known and known.current(held.clock.now()):
        problem = f"{telling.asked(tool, arguments)} was read and is current"
        held.decide(lambda state, now: decide.proposal_refused(state, (problem,)))
        return True
    _observed(held, telling.asked(tool, arguments), _read_now(held, tool, arguments))
    return True


def _read_now(held: Held, tool: ReadingTool, arguments: str) -> facts.Read:
    return facts.read_once(
        tool, arguments, held.clock.now(), tenant=held.state.identity.tenant, half_lives=held.agent.half_lives
    )


def _told(agent: agents.Agent, proposal: agents.Read, error: Exception) -> str:
    """Why the reading was not asked for; a tool with sensitive values says it without quoting what it was given."""
    known = next((tool for tool in agent.tools if tool.name == proposal.tool), None)
    return type(error).__name__ if known and known.sensitive else str(error)


def _observed(held: Held, what: str, read: facts.Read) -> None:
    event = read.event
    if event is not None:
        held.decide(lambda state, now: (*decide.read(state, event), *decide.kept(state, read.kept)))
        return
    held.decide(
        lambda state, now: decide.attempt_failed(
            state, what=what, detail=read.fresh.failure, reason="observation_stale", now=now
        )
    )


def _revalidate(held: Held) -> bool:
    """All checks, before an approved or recovered run goes on. What cannot be read now is tried again first."""
    if decide.projected_anew(held.state):
        held.decide(lambda state, now: decide.projected_anew(state))
    reads = facts.read_needed(held.state, held.agent, held.clock.now())
    facts.ask_sources(held.agent)
    unread = next((r.fresh.failure for r in reads.values() if r.fresh.failure), "") or _unheard(held)
    if unread and held.state.failures + 1 < decide.FAILURES_BEFORE_HUMAN:
        held.decide(
            lambda state, now: decide.attempt_failed(
                state, what="revalidation", detail=unread, reason="observation_stale", now=now
            )
        )
        return False
    held.decide(lambda state, now: _revalidated(held, reads, state, now))
    return True


def _unheard(held: Held) -> str:
    """Why nobody can say whether the run's constraints stand; empty where their sources say so or are not needed."""
    if held.state.undoing:
        return ""
    stated = sources.standing(held.agent, held.state).values()
    return next((x.why for x in stated if x.became is Became.UNREACHABLE), "")


def _revalidated(
    held: Held, reads: dict[tuple[str, str], facts.Read], state: s.RunState, now: datetime
) -> Sequence[e.Event]:
    fresh = {key: read.fresh for key, read in reads.items()}
    known = facts.gather(state, held.run, held.agent, fresh, now)
    by_people = state.plan is not None and (state.reenters or not state.plan.by_policy)
    asks = planning.requirement(state, held.agent, state.plan.plan) if by_people and state.plan else None
    follows = decide.revalidated(state, known, requirement=asks, request=str(uuid4()), now=now)
    read = [
        event for x in reads.values() if x.event for event in (x.event, *decide.kept(state, x.kept))
    ]  # fmt: skip
    return *read, *follows


def _execute(held: Held) -> bool:
    state = held.state
    # In a round that nobody approved the next step is not sent: the same checks find that, and ask people anew.
    covered = all(map(state.covers_round, state.remaining[:1])) and not state.approval_over
    # What the next step rests on may have grown too old while the steps before it were done.
    if not (held.validated(state) and covered) or out_of_date(state, held.clock.now()):
        return _revalidate(held)
    if not held.state.remaining:
        return _finish(held)
    if held.state.remaining[0].wait is not None:
        return _wait(held, held.state.remaining[0])
    return _send(held)


def _wait(held: Held, step: s.PlanStep) -> bool:
    """Begin to wait. Where that starts runs, its transaction makes the checks of a send."""
    runs = step.wait.children if step.wait else ()
    missing = next((x for x in runs if (x.agent, x.version) not in agents.registered()), None)
    if missing:
        name, version = missing.agent, missing.version
        held.decide(lambda state, now: decide.human("version_unavailable", subject=name, evidence=version))
        return False
    guard = (
        facts.guard_of(held.state, held.run, step.system, step.operation_id, scopes=(grants.RUNS,))
        if runs
        else None
    )
    for child in runs:
        facts.ask_sources(agents.registered()[child.agent, child.version])
    try:
        held.decide(lambda state, now: decide.begin_wait(state, now=now), guard=guard)
    except sources.SourceUnknown as error:
        ref, why = error.ref, error.why
        held.decide(lambda state, now: decide.human("observation_stale", subject=ref, evidence=why))
        return False
    except SendRefused as refused:
        return _checks_failed(held, refused)
    return True


def _finish(held: Held) -> bool:
    """Every step is done. A run that was not to end here is planned on."""
    if held.state.undo_requested and (left := undoing.left_out(held.state, held.agent)):
        held.decide(lambda state, now: decide.undo_more(state, left))
        return True
    ends = decide.finish_cancel if held.state.undoing else decide.finished
    held.decide(lambda state, now: ends(state))
    return held.state.state is s.State.PLANNING


def terms_of(tool: WritingTool) -> e.Terms:
    """What the tool declares, with the defaults of the durations table."""
    default = settings.HANDOFF_DURATIONS
    return e.Terms(
        reversible=tool.reversible,
        queryable=tool.queryable,
        retention=tool.idempotency_retention,
        dispatch_window=tool.dispatch_window or default.dispatch_window,
        timeout=tool.timeout or default.tool_timeout,
        settle=tool.settle or default.settle,
        patience=tool.patience or default.patience,
        guarded=tool.guarded,
        repeatable=tool.repeatable_ids,
    )


def _send(held: Held) -> bool:
    """Persist the intent of the next step, then call."""
    step = held.state.remaining[0]
    if not step.late:
        return _persist_and_call(held, _sending(held, held.state))
    if not _read_for(held, step):
        return False
    try:
        bound = late_values.bindings(held.state, held.agent, step)
    except artifacts.ArtifactUnreadable as error:
        failure = plain(str(error))
        held.decide(
            lambda state, now: decide.attempt_failed(
                state, what=step.name, detail=failure, reason="observation_stale", now=now
            )
        )
        return False
    return _persist_and_call(held, _sending(held, held.state, bound))


def _read_for(held: Held, step: s.PlanStep) -> bool:
    """Read what the step's open arguments are to be taken from; False where that cannot be read now."""
    for source in late_values.readings(step):
        tool = held.agent.reading(source.tool)
        read = _read_now(held, tool, source.arguments)
        _observed(held, telling.asked(tool, source.arguments), read)
        if read.event is None:
            return False
    return True


def _sending(held: Held, state: s.RunState, bindings: Bindings | None = None) -> Sending:
    """The send of the next step, as of that state."""
    step = state.remaining[0]
    tool = held.agent.writing(step.tool)
    terms, account, me = terms_of(tool), tool.account, sender()
    operation_id = round_suffix(step.operation_id, state.round_of(step))
    earlier = state.by_operation(step.system, operation_id)
    senders_gone = earlier is not None and all(gone(send.sender) for send in earlier.sends)
    return Sending(
        decider=lambda state, now: decide.next_send(
            state,
            terms=terms,
            account=account,
            sender=me,
            now=now,
            senders_gone=senders_gone,
            bindings=bindings,
        ),
        terms=terms,
        account=account,
        guard=facts.guard_of(
            state, held.run, step.system, operation_id, repeatable=terms.repeatable,
            scopes=(step.tool, step.system), cost=state.reserves(bindings.step if bindings else step, earlier),
        ),
        bindings=bindings,
    )  # fmt: skip


def _following(held: Held, state: s.RunState) -> Sending | None:
    """The send that goes into the transaction of the receipt before it: so a step costs one commit.

    Only where the loop would come to that send with nothing in between; each other case takes the loop.
    """
    ready = state.state is s.State.EXECUTING and held.validated(state) and not out_of_date(state, state.at)
    stops = (
        state.cancel_requested
        or state.retry_at
        or state.open_effects
        or state.approval_over
        or state.outdated
    )
    sends = state.remaining and state.remaining[0].wait is None and not state.remaining[0].late
    return _sending(held, state) if ready and sends and not stops else None


def _resend(held: Held, effect: s.Effect) -> bool:
    """An unknown effect that the outside cannot be asked about: sent again under its key, with a send's checks."""
    me = sender()
    known = held.state
    sending = Sending(
        decider=lambda state, now: decide.resend_unknown(state, effect.number, sender=me, now=now),
        terms=effect.terms,
        account=effect.account,
        guard=facts.guard_of(
            known, held.run, effect.system, effect.operation_id, repeatable=effect.terms.repeatable,
            scopes=(effect.tool, effect.system), cost=None if effect.grant == known.grant else effect.cost,
        ),
    )  # fmt: skip
    return _persist_and_call(held, sending)


def _persist_and_call(held: Held, sending: Sending) -> bool:
    """The one place that sends. The window is counted from before the intent's transaction was sent."""
    began, before = uptime(), held.state.seq
    try:
        held.decide(sending.decider, lease=sending.lease, guard=sending.guard)
    except SendRefused as refused:
        return _send_refused(held, refused, sending)
    effect = _just_sent(held.state, before)
    while effect is not None:
        tool = held.agent.writing(effect.tool)
        if effect.terms.blind:
            _mark(held, effect.number)
        answer = _called(held, tool, effect, began)
        began, before = uptime(), held.state.seq
        followed = _received(held, tool, effect, answer)
        effect = _just_sent(held.state, before) if followed else None
    return True


def _mark(held: Held, number: int) -> None:
    """The mark just before a blind tool's call."""
    held.decide(lambda state, now: decide.dispatched(state, number))


def _just_sent(state: s.RunState, before: int) -> s.Effect | None:
    """The effect whose send was stored after seq `before`; None where the step was settled without one."""
    sent = (
        x for x in state.open_effects if x.status is s.EffectStatus.IN_FLIGHT and x.last_send.seq > before
    )
    return next(sent, None)


def _send_refused(held: Held, refused: SendRefused, sending: Sending) -> bool:
    """The checks in the send's own transaction failed: nothing was sent; revalidation says why and what follows."""
    if refused.check == "occupied":
        holder = holder_of(refused.detail)
        held.decide(
            lambda state, now: decide.occupied(
                state,
                holder,
                terms=sending.terms,
                account=sending.account,
                now=now,
                bindings=sending.bindings,
            )
        )
        return True
    if refused.check == "history":
        # The database was restored under this lease: the next claim notes that, and what is sent is asked about first.
        raise LeaseLost(held.run.pk)
    return _checks_failed(held, refused)


def _checks_failed(held: Held, refused: SendRefused) -> bool:
    """Revalidation says why and what follows; where it lets the run pass again and again, a person."""
    held.refused_sends += 1
    if held.state.state in s.SENDING and held.refused_sends <= recovery.REFUSED_SENDS:
        return _revalidate(held)
    code = "no_progress" if held.state.state in s.SENDING else "effect_unknown"
    held.decide(lambda state, now: decide.human(code, subject=refused.check, evidence=str(refused.detail)))
    return False


def holder_of(found: dict[str, Any]) -> decide.Holder:
    """The other run's effect that the guard found. Texts of an event whose body was erased are empty."""
    known = {name: found[name] for name in decide.Holder.__struct_fields__ if found.get(name) is not None}
    return msgspec.convert(known, decide.Holder)


def _called(held: Held, tool: WritingTool, effect: s.Effect, began: timedelta) -> Answer:
    """Call, unless the window for it is over. A fault in an adapter says nothing about the outside."""
    if uptime() - began > effect.terms.dispatch_window:
        return Ambiguous(detail="the window for the call was over before it began")
    try:
        crash.reach(held.run.pk, crash.BEFORE_CALL)
        answer = tool.call(recovery.call_of(effect, held.state.expected_versions(effect.step)))
        crash.reach(held.run.pk, crash.AFTER_CALL)
        return answer
    except Exception as error:
        log.exception("the tool failed", extra={"tool": tool.name, "effect": effect.number})
        return Ambiguous(detail=f"{type(error).__name__} in the tool {tool.name}")


def _received(held: Held, tool: WritingTool, effect: s.Effect, answer: Answer) -> bool:
    """Evidence first: stored in any state. Reducing it moves the run where it still can.

    Where the call was done, the send of the next step is stored with it; whether one was.
    """
    number = effect.number
    whole = recovery.keepable(answer.evidence)
    evidence, kept = artifacts.evidence_of(held.state.identity.tenant, effect, whole)
    # Storing a long one takes a part of the window in which the next call may begin.
    at_once = len(whole) <= LARGEST_INLINE
    match answer:
        case Executed(reference=reference, versions=versions):
            problem = _problem(tool, effect, answer.evidence) or _elsewhere(effect, answer.account)
            promises = promised(tool, effect.arguments, answer.evidence)
            return held.evidence(
                _tied(
                    kept,
                    lambda state, now, late: decide.executed(
                        state,
                        number,
                        reference=plain(reference),
                        evidence=evidence,
                        problem=problem,
                        promises=promises,
                        versions={plain(resource): plain(version) for resource, version in versions.items()},
                        late=late,
                    ),
                ),
                then=(lambda state: _following(held, state)) if at_once else None,
            )
        case Refused(detail=detail):
            return held.evidence(
                _tied(
                    kept,
                    lambda state, now, late: decide.refused_call(
                        state, number, detail=plain(detail), evidence=evidence, late=late
                    ),
                )
            )
        case Ambiguous(detail=detail):
            return held.evidence(
                _tied(
                    kept,
                    lambda state, now, late: decide.ambiguous(
                        state, number, detail=plain(detail), evidence=evidence, late=late
                    ),
                )
            )


def _tied(kept: e.ArtifactKept | None, decider: recovery.EvidenceDecider) -> recovery.EvidenceDecider:
    """The decider's events, and after them what ties the whole of a long evidence to the run."""
    return lambda state, now, late: (*decider(state, now, late), *decide.kept(state, kept))


def _problem(tool: WritingTool, effect: s.Effect, evidence: Any) -> str | None:
    """The postcondition that does not hold. One that cannot be checked does not; the receipt is kept all the same."""
    try:
        problem = tool.postcondition(parse_json(effect.arguments), evidence)
    except Exception as error:
        log.exception("the postcondition failed", extra={"tool": tool.name, "effect": effect.number})
        problem = f"it could not be checked: {type(error).__name__}: {error}"
    return plain(problem) if problem else None


def _elsewhere(effect: s.Effect, account: str) -> str | None:
    if account == effect.account:
        return None
    return plain(f"it was done in account {account}, ordered in {effect.account}")


def _ask(held: Held) -> bool:
    """Ask what became of the first unknown effect whose time has come; never send."""
    now = held.clock.now()
    due = [x for x in held.state.open_effects if x.next_ask_at is None or x.next_ask_at <= now]
    if not due:
        return False
    effect = due[0]
    tool = held.agent.writing(effect.tool)
    if not effect.terms.queryable:
        return _resend(held, effect)
    answer, evidence, found = recovery.ask(effect, tool)
    problem: str | None = None
    promises: tuple[e.Promised, ...] = ()
    if found and verdict(effect, answer, now).kind is Kind.RECEIPT:
        problem = _problem(tool, effect, found.evidence)
        promises = promised(tool, effect.arguments, found.evidence)
    evidence, kept = artifacts.evidence_of(held.state.identity.tenant, effect, evidence)
    number, senders_gone = effect.number, all(gone(send.sender) for send in effect.sends)
    held.decide(
        lambda state, now: (
            *decide.asked(
                state,
                number,
                answer,
                evidence=evidence,
                problem=problem,
                now=now,
                senders_gone=senders_gone,
                promises=promises,
            ),
            *decide.kept(state, kept),
        )
    )
    return True
