"""Just before a send: the values that came for what its step leaves open, and the step with all its arguments.

The same rows give the same values, so a process that dies between this and the intent changes nothing. Readings are
asked for anew each time; what they said is an event, and the intent holds what was taken.
"""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from runs import artifacts, ledger, planning, predicates
from runs.agents import Agent
from runs.machine import decide, late
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import Uncanonical, canonical, parse, plain, round_suffix
from runs.machine.late import Bindings, PlanLate, Source, SourceKind
from runs.tools import ArgumentsRefused, WritingTool

log = logging.getLogger(__name__)


def readings(step: s.PlanStep) -> tuple[Source, ...]:
    """What has to be read before the step's arguments can be bound."""
    return tuple(x.source for x in step.late if x.source.kind is SourceKind.READING)


def bindings(state: s.RunState, agent: Agent, step: s.PlanStep) -> Bindings:
    """The step as it is to be sent. Of an intent that was made already, with the arguments that it holds.

    Raises artifacts.ArtifactUnreadable where a long value cannot be had now.
    """
    assert state.plan is not None
    version, tool = state.plan.version, agent.writing(step.tool)
    try:
        bound = _made(state, step) or tuple(_bound(state, agent, x) for x in step.late)
    except _NotThere as missing:
        return _refused(version, step, missing.late, missing.why)
    if outside := late.outside(step, bound):
        return Bindings(plan_version=version, step=step, refused=outside)
    try:
        whole = _whole(tool, step, bound)
    except (ArgumentsRefused, Uncanonical) as error:
        return _refused(version, step, step.late[0], planning.told(tool, error))
    except Exception as error:
        # A tool is foreign code: what it fails on is not sent.
        log.exception("the tool failed on arguments that were bound late", extra={"tool": step.tool})
        return _refused(version, step, step.late[0], f"{type(error).__name__}: {planning.told(tool, error)}")
    found = Bindings(plan_version=version, step=whole, bound=bound)
    refused = _otherwise(step, whole) or _breaks(state, whole) or _stricter(state, agent, whole)
    return replace(found, refused=refused) if refused else found


class _NotThere(Exception):
    """Nothing stands where a value was to come from."""

    def __init__(self, late: PlanLate, why: str) -> None:
        self.late, self.why = late, why
        super().__init__(why)


def _refused(version: int, step: s.PlanStep, of: PlanLate, why: str) -> Bindings:
    return Bindings(plan_version=version, step=step, refused=late.cause(step, of, plain(why)))


def _made(state: s.RunState, step: s.PlanStep) -> tuple[e.Bound, ...]:
    """What an earlier send of this very step took: it is the same intent, whatever its sources say by now."""
    known = state.by_operation(step.system, round_suffix(step.operation_id, state.round_of(step)))
    same = known is not None and late.same_intent(known, step, state.plan)
    return known.bound if known and same else ()


def _bound(state: s.RunState, agent: Agent, open_: PlanLate) -> e.Bound:
    """Raises _NotThere, artifacts.ArtifactUnreadable."""
    try:
        value, source = _source(state, agent, open_.source)
        text = canonical(late.value_at(value, open_.source.path))
    except (LookupError, ledger.LogUnreadable):
        raise _NotThere(open_, "") from None
    except Uncanonical as error:
        raise _NotThere(open_, str(error)) from error
    if len(text) > late.LONGEST:
        raise _NotThere(open_, f"{text[:100]}…")
    return e.Bound(path=open_.path, value=e.raw(text), source=source)


def _source(state: s.RunState, agent: Agent, source: Source) -> tuple[Any, str]:
    """What the source holds, and the event it comes from. Raises LookupError where there is nothing."""
    run, tenant = state.identity.run, state.identity.tenant
    match source.kind:
        case SourceKind.RECEIPT:
            return _receipt(state, agent, source)
        case SourceKind.SIGNAL:
            answer = next((x for x in reversed(state.signals) if x.taken_by == source.step), None)
            if answer is None:
                raise LookupError(source.step)
            return parse(artifacts.text_of(tenant, answer.payload)), f"{run}:{answer.seq}"
        case SourceKind.CHILD:
            ended = {x.name: x for x in decide.latest_children(state, source.step)}
            child = ended[source.run]
            value = {"run": child.run, "ended": child.ended, "spent": child.spent}
            return value, f"{run}:{child.ended_seq}"
        case SourceKind.READING:
            seen = state.observations[source.tool, source.arguments]
            return parse(artifacts.text_of(tenant, seen.value)), f"{run}:{seen.seq}"


def _receipt(state: s.RunState, agent: Agent, source: Source) -> tuple[Any, str]:
    """The receipt of a step of this plan, also where that was answered from what stood before. Raises LookupError."""
    holder, number = state, state.done[source.step]
    if number == 0:
        holder, number = _elsewhere(state.identity.run, source.step)
    effect = holder.effects[number]
    if effect.receipt is None or not effect.receipt.executed:
        raise LookupError(source.step)
    evidence = _evidence(holder.identity, effect.receipt.seq)
    value = {"reference": effect.receipt.reference}
    if evidence is not None:
        value["evidence"] = agent.writing(effect.tool).outcome(parse(evidence))
    return value, f"{holder.identity.run}:{effect.receipt.seq}"


def _elsewhere(run: str, step: str) -> tuple[s.RunState, int]:
    """The run of the lineage whose receipt answered the step, and the effect there."""
    answered = [
        x.event for x in ledger.log(run) if isinstance(x.event, e.StepAnswered) and x.event.step == step
    ]
    if not answered:
        raise LookupError(step)
    return ledger.load(answered[-1].run), answered[-1].effect


def _evidence(identity: s.Identity, seq: int) -> str | None:
    """What the other side had said, whole; None where people settled the effect by their word."""
    event = _event(identity.run, seq)
    if isinstance(event, e.EffectReconciled):
        event = _event(identity.run, event.asked)
    if not isinstance(event, e.ReceiptStored | e.EffectQueried):
        return None
    return artifacts.text_of(identity.tenant, e.text_of(event.evidence))


def _event(run: str, seq: int) -> e.Event:
    """Raises LookupError where this database never had it: the run was taken in from elsewhere after that."""
    found = next(ledger.log(run, after=seq - 1, until=seq), None)
    if found is None:
        raise LookupError(f"{run}:{seq}")
    return found.event


def _whole(tool: WritingTool, step: s.PlanStep, bound: tuple[e.Bound, ...]) -> s.PlanStep:
    """The step with every argument, as the tool's schema leaves them, and what it is and costs with these."""
    values = [(x.path, parse(e.text_of(x.value))) for x in bound]
    arguments = tool.validate(late.merged(parse(step.arguments), values))
    whole = planning.planned(tool, step.name, arguments, canonical(arguments), step.rests_on)
    return replace(whole, undoes=step.undoes)


def _otherwise(step: s.PlanStep, whole: s.PlanStep) -> e.Cause | None:
    """What of the whole step is not what people saw: the tool made something else of the values than of the bounds."""
    arguments = parse(whole.arguments)
    for open_ in step.late:
        try:
            value = late.value_at(arguments, open_.path)
        except LookupError:
            return late.cause(step, open_, "")
        if not late.within(open_.bounds, value):
            return late.cause(step, open_, canonical(value))
    known = canonical(late.without(arguments, (x.path for x in step.late)))
    pairs = (
        ("arguments", step.arguments, known),
        ("operation id", step.operation_id, whole.operation_id),
        ("cost", step.cost, whole.cost),
    )
    for what, was, now in pairs:
        dearer = what == "cost" and Decimal(now or 0) > Decimal(was or 0)
        if dearer or (what != "cost" and was != now):
            return e.Cause(what=late.CAUSE, subject=f"{step.name} {what}", was=was or "", now=now or "")
    return None


def _breaks(state: s.RunState, whole: s.PlanStep) -> e.Cause | None:
    """The constraint that the step does not keep with these very values."""
    assert state.plan is not None
    for found in predicates.broken(state, _with(state.plan.plan, whole)):
        named = f"C-{found.constraint} {found.name}".strip()
        return e.Cause(what=late.BROKEN, subject=whole.name, was=named, now=found.why or found.text)
    return None


def _with(plan: s.PlanDocument, whole: s.PlanStep) -> s.PlanDocument:
    return replace(plan, steps=tuple(whole if x.name == whole.name else x for x in plan.steps))


def _stricter(state: s.RunState, agent: Agent, whole: s.PlanStep) -> e.Cause | None:
    """Where the policy asks for more people for these very values than for those that it saw: they were not asked."""
    assert state.plan is not None
    request = None if state.plan.by_policy else state.request
    asks = planning.requirement(state, agent, _with(state.plan.plan, whole))
    asked, quorums = (request.needed, request.quorums) if request else (0, ())
    if asks.needed <= asked and set(asks.quorums) <= set(quorums):
        return None
    return e.Cause(what="policy_asks", subject=whole.name, was=str(asked), now=str(asks.needed))
