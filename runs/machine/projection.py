"""state -> the rows beside the log. Pure, so that re-reduction can rebuild every row and compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from itertools import compress, islice
from operator import is_not
from typing import Any, Final

from runs.machine import expiry
from runs.machine import state as s
from runs.machine.canonical import plain
from runs.machine.evolve import REDUCER_VERSION
from runs.machine.safety import came
from runs.machine.waits import Child, Wait, WaitKind

Row = dict[str, Any]
Rows = dict[str, list[Row]]
LONGEST = 300
#: Grows when the same state comes to amount to other rows: where a column is added, or made of something else. The rows
#: of open runs are then made anew at their next revalidation, and are not taken for damaged.
VERSION: Final = 3
#: What made the rows: the version of the reducer and that of the rows.
PROJECTED: Final = f"{REDUCER_VERSION}.{VERSION}"


def wake_at(state: s.RunState) -> datetime | None:
    """When a worker has to look at the run next; None where only a person, or nobody, moves it."""
    match state.state:
        case s.State.SUCCEEDED | s.State.CANCELLED | s.State.RESTARTED:
            return None
        case s.State.NEEDS_HUMAN:
            return state.at if _may_end(state) else None
        case s.State.WAITING:
            return _earliest(_wait_over_at(state), expiry.due(state))
        case s.State.WAITING_APPROVAL:
            return state.at if _asks_for_another(state) else expiry.due(state)
        case s.State.UNKNOWN:
            return min((e.next_ask_at or state.at for e in state.open_effects), default=state.at)
        case _:
            return state.retry_at or state.at


def _may_end(state: s.RunState) -> bool:
    """A cancel that waited for an open effect or a child goes on by itself once nothing is open."""
    asked = state.cancel_requested and not state.undoing
    return asked and not state.open_effects and not state.open_children


def _asks_for_another(state: s.RunState) -> bool:
    """What is asked for would be sent under another key or grant by now: the request ends, and another is made."""
    pending = state.request is not None and state.request.status is s.RequestStatus.PENDING
    return pending and (bool(state.uncovered) or state.asked_under_another)


def _earliest(*times: datetime | None) -> datetime | None:
    return min((at for at in times if at is not None), default=None)


def _wait_over_at(state: s.RunState) -> datetime | None:
    """At once where what is waited for came; None where only an answer or a child's end brings it on."""
    wait = state.wait
    if _may_end(state) or wait is None:
        return state.at
    if wait.kind is not WaitKind.TIMER and came(state, wait, state.at):
        return state.at
    return wait.until


def run_row(state: s.RunState) -> Row:
    """The columns of the run that its events move."""
    return {
        "agent_version": state.identity.agent_version,
        "state": state.state.value,
        "direction": state.direction.value,
        "before": state.before.value if state.before else "",
        "since": state.since,
        "reasons": [r.code for r in state.reasons],
        "cancel_requested": state.cancel_requested,
        "goal": state.goal.text,
        "goal_version": state.goal.version,
        "plan_version": state.plan.version if state.plan else 0,
        "grant_id": state.grant or None,
        "wake_at": wake_at(state),
    }


def _kept(text: str, most: int = LONGEST) -> str:
    """Text from outside as a column holds it: no constraint may refuse a receipt. The event has all of it."""
    return plain(text)[:most]


def moved_row(before: s.RunState | None, after: s.RunState) -> Row | None:
    """The columns of the run where any of them moved; None where at most `wake_at` did.

    Parts are frozen: one that is the same object has not changed.
    """
    if before is None or any(getattr(before, part) is not getattr(after, part) for part in _ROW_PARTS):
        return run_row(after)
    return None


_ROW_PARTS = (
    "state",
    "direction",
    "before",
    "since",
    "reasons",
    "cancel_requested",
    "goals",
    "plans",
    "lendings",
)


def effect_row(state: s.RunState, effect: s.Effect) -> Row:
    """One effect's row."""
    return {
        "run_id": state.identity.run,
        "tenant_id": state.identity.tenant,
        "number": effect.number,
        "lineage": state.identity.lineage,
        "step": effect.step,
        "tool": effect.tool,
        "system": effect.system,
        "operation_id": effect.operation_id,
        "key": effect.key,
        "round": effect.round,
        "arguments_digest": effect.arguments_digest,
        "title": effect.title,
        "reversible": effect.terms.reversible,
        "status": effect.status.value,
        "intent_seq": effect.intent_seq,
        "send_seq": effect.last_send.seq,
        "receipt_seq": effect.receipt.seq if effect.receipt else None,
        "reference": _kept(effect.receipt.reference) if effect.receipt else "",
        "undoes_run": effect.undoes.run if effect.undoes else "",
        "undoes_effect": effect.undoes.effect if effect.undoes else None,
        "grant_id": effect.grant or None,
        "cost": None if effect.cost is None else Decimal(effect.cost),
    }


#: Of an effect, what can move after its intent.
EFFECT_MOVES = ("number", "status", "send_seq", "receipt_seq", "reference", "grant_id")


def moved_effect(before: s.RunState | None, row: Row) -> Row:
    """An effect's row: whole where its intent is new, else what can have moved of it."""
    if before is None or row["number"] not in before.effects:
        return row
    return {name: row[name] for name in EFFECT_MOVES}


def _plan_row(state: s.RunState, plan: s.PlanVersion) -> Row:
    return {
        "run_id": state.identity.run,
        "tenant_id": state.identity.tenant,
        "version": plan.version,
        "digest": plan.digest,
        "goal_version": plan.plan.goal_version,
        "constraints_digest": plan.plan.constraints_digest,
        "policy_version": plan.plan.policy_version,
        "steps": len(plan.plan.steps),
        "irreversible": sum(not step.reversible for step in plan.plan.steps),
        "by_policy": plan.by_policy,
        "seq": plan.seq,
        "voided_seq": plan.voided_seq,
    }


def _constraint_row(state: s.RunState, constraint: s.Constraint) -> Row:
    return {
        "run_id": state.identity.run,
        "tenant_id": state.identity.tenant,
        "number": constraint.number,
        "text": constraint.term.text,
        "source_kind": constraint.term.source_kind,
        "source_ref": constraint.term.source_ref,
        "source_version": constraint.term.source_version,
        "seq": constraint.seq,
        "name": constraint.term.name,
        "predicate": constraint.term.predicate,
        "withdrawn_seq": constraint.withdrawn.seq if constraint.withdrawn else None,
        "amended_version": constraint.amended.term.source_version if constraint.amended else "",
    }


def _assumption_rows(state: s.RunState, plan: s.PlanVersion) -> Iterator[Row]:
    """What a plan version takes for true, each with its basis: observations and constraints by number."""
    broken = {x.text: x for x in plan.broken}
    for number, assumed in enumerate(plan.plan.assumptions, 1):
        rests = (state.observations.get((r.tool, r.arguments)) for r in assumed.rests_on)
        found = broken.get(assumed.text)
        yield {
            "run_id": state.identity.run,
            "tenant_id": state.identity.tenant,
            "plan_version": plan.version,
            "number": number,
            "text": assumed.text,
            "observations": [seen.number for seen in rests if seen],
            "constraints": list(assumed.constraints),
            "broken_seq": found.seq if found else None,
            "broken_by": found.by if found else "",
        }


def _obligation_row(state: s.RunState, obligation: s.Obligation) -> Row:
    return {
        "run_id": state.identity.run,
        "tenant_id": state.identity.tenant,
        "number": obligation.number,
        "text": obligation.text,
        "due_at": obligation.due_at,
        "opened_seq": obligation.opened_seq,
        "discharged_seq": obligation.discharged_seq,
        "handed_over": obligation.handed_over,
        "to_whom": _kept(obligation.to),
        "owner": obligation.owner.id if obligation.owner else "",
        "owner_name": _kept(obligation.owner.name) if obligation.owner else "",
        "overdue_seq": obligation.overdue_seq,
    }


def _observation_row(state: s.RunState, observation: s.Observation) -> Row:
    return {
        "run_id": state.identity.run,
        "tenant_id": state.identity.tenant,
        "number": observation.number,
        "tool": observation.tool,
        "resource": _kept(observation.resource),
        "version": _kept(observation.version),
        "observed_at": observation.observed_at,
        "expires_at": observation.expires_at,
        "seq": observation.seq,
    }


def _wait_row(state: s.RunState, wait: Wait) -> Row:
    return {
        "run_id": state.identity.run,
        "tenant_id": state.identity.tenant,
        "step": wait.step,
        "kind": wait.kind.value,
        "signal": wait.signal,
        "began_seq": wait.began_seq,
        "until": wait.until,
        "ended_seq": wait.ended_seq,
    }


def _child_row(state: s.RunState, child: Child) -> Row:
    return {
        "run_id": state.identity.run,
        "tenant_id": state.identity.tenant,
        "seq": child.seq,
        "name": child.name,
        "step": child.step,
        "child_id": child.run,
        "ended_seq": child.ended_seq,
    }


def changes(before: s.RunState | None, after: s.RunState) -> Rows:
    """The rows that the step from `before` to `after` moved; all of them where there is no `before`.

    Parts are frozen: one that is the same object has not changed.
    """
    plans = _moved(before.plans if before else (), after.plans)
    return {
        "effects": [effect_row(after, x) for x in _moved_in(before.effects if before else {}, after.effects)],
        "plans": [_plan_row(after, p) for p in plans],
        "assumptions": [row for p in plans for row in _assumption_rows(after, p)],
        "constraints": [
            _constraint_row(after, c) for c in _moved(before.constraints if before else (), after.constraints)
        ],
        "obligations": [
            _obligation_row(after, o) for o in _moved(before.obligations if before else (), after.obligations)
        ],
        "observations": [
            _observation_row(after, o)
            for o in _moved_in(before.observations if before else {}, after.observations)
        ],
        "waits": [_wait_row(after, w) for w in _moved_in(before.waits if before else {}, after.waits)],
        "children": [
            _child_row(after, c) for c in _moved_in(before.children if before else {}, after.children)
        ],
    }


def _moved[T](before: tuple[T, ...], after: tuple[T, ...]) -> tuple[T, ...]:
    """Those of `after` that were not in `before` as they are."""
    if before is after:
        return ()
    old = {id(part) for part in before}
    return tuple(part for part in after if id(part) not in old)


def _moved_in[K, T](before: Mapping[K, T], after: Mapping[K, T]) -> Iterator[T]:
    """Those of `after` that were not in `before` as they are. Parts are never taken out and keep their order."""
    yield from compress(after.values(), map(is_not, after.values(), before.values()))
    yield from islice(after.values(), len(before), None)
