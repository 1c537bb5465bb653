"""state + event -> state, and its fold.

`evolve` is pure: it works on a draft that nobody else sees. `reduce` folds a whole log into one draft. What
an event does to the run's state is the table's; what it does to the parts is one small function per event
type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from runs.machine import (
    agreeing,
    assumptions,
    constraining,
    effecting,
    evolving,
    obligations,
    observing,
    settling,
    taking_in,
)
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.draft import Draft, Handler, Handlers
from runs.machine.transitions import BY_DIRECTION, Move, target

#: Grows when the same log comes to amount to another state.
REDUCER_VERSION: Final = 1


def evolve(state: s.RunState | None, recorded: e.Recorded) -> s.RunState:
    """The state after one more event. Raises transitions.Refused for a pair that the table lacks."""
    draft = Draft(state)
    take(draft, recorded)
    return draft.freeze()


def reduce(log: Iterable[e.Recorded]) -> s.RunState:
    """The state that a log amounts to. The log starts with RunStarted; raises Refused where it cannot be so."""
    draft = Draft(None)
    for recorded in log:
        take(draft, recorded)
    return draft.freeze()


def take(draft: Draft, recorded: e.Recorded) -> None:
    """Reduce one event. Raises Refused for a pair that the table lacks."""
    event = recorded.event
    kind = type(event)
    move = target(draft.state if draft.started else None, kind)
    if not draft.started:
        draft.begin()
    draft.seq, draft.at = recorded.seq, recorded.at
    HANDLERS[kind](draft, event, recorded)
    if move is not Move.SAME:
        _move(draft, move, recorded)


def _move(draft: Draft, move: s.State | Move, recorded: e.Recorded) -> None:
    new = _new_state(draft, move)
    if not draft.started:
        draft.state, draft.since = new, recorded.at
        draft.started = True
    elif new is not draft.state:
        _leave(draft, new, recorded.seq)
        draft.state, draft.since = new, recorded.at
        if new in s.TERMINAL:
            settling.name_contradiction(draft)


def _new_state(draft: Draft, move: s.State | Move) -> s.State:
    if isinstance(move, s.State):
        return move
    if move is Move.RESTORES:
        return draft.state
    if move in BY_DIRECTION:
        return BY_DIRECTION[move][draft.direction]
    if move is Move.SETTLES and not _settled(draft):
        return draft.state
    if move is Move.REBOUND:
        return _rebound(draft)
    if draft.before is None:
        raise ValueError(f"{draft.state} has no state to return to")
    return draft.before


def _rebound(draft: Draft) -> s.State:
    """Back to where it was, or to planning where its plan ended with the move; stopped while a reason is left."""
    ended = bool(draft.plans) and draft.plans[-1].voided_seq == draft.seq
    back = BY_DIRECTION[Move.REPLANS][draft.direction] if ended else draft.before or draft.state
    if not draft.reasons:
        return back
    draft.before = back
    return draft.state


def _leave(draft: Draft, new: s.State, seq: int) -> None:
    """Remember where to return to when the run is stopped; forget it when it goes on."""
    stops = (s.State.UNKNOWN, s.State.NEEDS_HUMAN)
    if draft.state is s.State.WAITING and new not in stops:
        draft.returned_seq = seq  # time has passed: all checks are made again
    if new in stops:
        draft.before = draft.state if draft.state not in stops else draft.before
    elif draft.state in stops:
        draft.before, draft.reasons, draft.returned_seq = None, (), seq


def _settled(draft: Draft) -> bool:
    """Nothing in flight or unknown any more, and no other reason to stay."""
    if any(x.status in s.OPEN_EFFECT for x in draft.effects.values()):
        return False
    draft.reasons = tuple(r for r in draft.reasons if r.code not in ("effect_unknown", "effect_conflict"))
    settling.name_contradiction(draft)
    return not draft.reasons


HANDLERS: Final = Handlers()
for part in (agreeing, effecting, evolving, obligations, observing):
    HANDLERS.update(part.HANDLERS)
HANDLERS[e.RunTakenIn] = taking_in.taken_in
HANDLERS[e.EvidenceKept] = settling.kept
HANDLERS[e.ContradictionStated] = settling.stated
HANDLERS[e.InheritedLost] = settling.inherited_lost


@HANDLERS.on(e.RunStarted)
def _started(draft: Draft, event: e.RunStarted, recorded: e.Recorded) -> None:
    draft.identity = s.Identity(
        run=event.run, tenant=event.tenant, agent=event.agent, agent_version=event.agent_version,
        input=e.text_of(event.input), creator=event.creator, principal=event.principal, lineage=event.lineage,
        start_key=event.start_key, started_at=recorded.at, starter=recorded.actor, deadline=event.deadline,
        budget=event.budget, predecessor=event.predecessor, parent=event.parent, parent_step=event.parent_step,
        depth=event.depth, code=event.code, sensitive=event.sensitive, exempt=event.exempt,
    )  # fmt: skip
    draft.signals = evolving.signals_kept(event, recorded)
    draft.goals = (evolving.first_goal(event, recorded),)
    if event.lent:
        draft.lendings = (s.Lending(lent=event.lent, seq=recorded.seq, at=recorded.at),)
    draft.constraints = tuple(
        s.Constraint(
            number=n, term=term, seq=recorded.seq, at=recorded.at, confirmed=event.confirmed.get(str(n))
        )
        for n, term in enumerate(event.constraints, 1)
    )

    draft.history_lost, draft.projected = event.history_lost, event.projected
    draft.inherited = tuple(replace(x, seq=recorded.seq) for x in event.inherited)
    draft.rounds, draft.keys = dict(event.rounds), dict(event.keys)
    draft.obligations = obligations.taken_over(event, recorded)


@HANDLERS.on(e.ObservationRecorded)
def _observed(draft: Draft, event: e.ObservationRecorded, recorded: e.Recorded) -> None:
    key = (event.tool, e.text_of(event.arguments))
    known = draft.observations.get(key)
    draft.observations[key] = s.Observation(
        number=known.number if known else len(draft.observations) + 1, tool=event.tool, arguments=key[1],
        value=e.text_of(event.value), resource=event.resource, version=event.version,
        observed_at=event.observed_at, half_life=event.half_life, seq=recorded.seq, sensitive=event.sensitive,
    )  # fmt: skip
    draft.retry_at, draft.failures = None, 0
    draft.reads += 1


@HANDLERS.on(e.AttemptFailed)
def _failed(draft: Draft, event: e.AttemptFailed, recorded: e.Recorded) -> None:
    draft.retry_at = event.retry_at
    if not event.held_by:
        draft.failures += 1
        return
    since = draft.blocked.since if draft.blocked else recorded.at
    draft.blocked = s.Blocked(
        by=event.held_by, since=since, times=draft.blocked.times + 1 if draft.blocked else 1
    )


@HANDLERS.on(e.ProposalRefused)
def _proposal_refused(draft: Draft, event: e.ProposalRefused, recorded: e.Recorded) -> None:
    draft.failures += 1


@HANDLERS.on(e.RevalidationPassed)
@HANDLERS.on(e.RevalidationRefused)
def _revalidated(draft: Draft, event: Any, recorded: e.Recorded) -> None:
    passed = isinstance(event, e.RevalidationPassed)
    draft.revalidation = s.Revalidation(seq=recorded.seq, at=recorded.at, passed=passed, checks=event.checks)
    draft.retry_at, draft.failures = None, 0
    if passed:
        draft.replans = 0
    else:
        assumptions.found_broken(draft, event.checks, recorded)


@HANDLERS.on(e.ProjectionRebuilt)
def _rebuilt(draft: Draft, event: e.ProjectionRebuilt, recorded: e.Recorded) -> None:
    draft.projected = event.now


@HANDLERS.on(e.HistoryChanged)
def _history_changed(draft: Draft, event: e.HistoryChanged, recorded: e.Recorded) -> None:
    draft.history_lost = True


@HANDLERS.on(e.RunRestarted)
def _restarted(draft: Draft, event: e.RunRestarted, recorded: e.Recorded) -> None:
    draft.successor = event.successor
    agreeing.void_request(
        draft, recorded, (e.Cause(what="restarted", subject="", was="", now=event.successor),)
    )


@HANDLERS.on(e.HumanNeeded)
def _human(draft: Draft, event: e.HumanNeeded, recorded: e.Recorded) -> None:
    known = {r.code for r in draft.reasons}
    draft.reasons += tuple(r for r in event.reasons if r.code not in known)
    draft.retry_at, draft.failures, draft.reads, draft.blocked = None, 0, 0, None


@HANDLERS.on(e.RunResumed)
def _resumed(draft: Draft, event: e.RunResumed, recorded: e.Recorded) -> None:
    for step in draft.plans[-1].plan.steps if event.raised else ():
        if step.name in event.raised:
            operation = f"{step.system} {step.operation_id}"
            draft.rounds[operation] = draft.rounds.get(operation, 0) + 1
    evolving.wait_prolonged(draft, recorded)
    if any(reason.code == "history_lost" for reason in draft.reasons):
        draft.history_lost = False  # a person looked outside and answers for it


@HANDLERS.on(e.VersionMoved)
def _version_moved(draft: Draft, event: e.VersionMoved, recorded: e.Recorded) -> None:
    """Other code has the run now; a reason that was about the code alone is over."""
    draft.identity = replace(draft.identity, agent_version=event.now, code=event.code)
    draft.reasons = tuple(r for r in draft.reasons if r.code != "version_unavailable")
    draft.retry_at, draft.failures, draft.replans = None, 0, 0
    if event.voids:
        agreeing.void_plan(draft, recorded, event.voids)


@HANDLERS.on(e.GoalRevised)
def _goal_revised(draft: Draft, event: e.GoalRevised, recorded: e.Recorded) -> None:
    _end_with(draft, recorded, evolving.goal_revised(draft, event, recorded))


def _constrained(change: Callable[[Draft, Any, e.Recorded], tuple[e.Cause, ...]]) -> Handler:
    """A handler that changes the constraints, and ends what was made under those before."""

    def handler(draft: Draft, event: Any, recorded: e.Recorded) -> None:
        if causes := change(draft, event, recorded):
            _end_with(draft, recorded, causes)

    return handler


HANDLERS[e.ConstraintAccepted] = _constrained(constraining.accepted)
HANDLERS[e.ConstraintConfirmed] = constraining.confirmed
HANDLERS[e.ConstraintWithdrawn] = _constrained(constraining.withdrawn)
HANDLERS[e.ConstraintAmended] = _constrained(constraining.amended)
HANDLERS[e.AmendmentAccepted] = _constrained(constraining.amendment_accepted)


def _end_with(draft: Draft, recorded: e.Recorded, causes: tuple[e.Cause, ...]) -> None:
    """The approval ends at once; the plan too, unless it is being carried out: then at the safe point."""
    agreeing.void_request(draft, recorded, causes)
    if evolving.may_replan(draft):
        agreeing.void_plan(draft, recorded, causes)


@HANDLERS.on(e.ReplanOrdered)
def _replan(draft: Draft, event: e.ReplanOrdered, recorded: e.Recorded) -> None:
    if event.note:
        draft.advice += (event.note,)
    draft.replans = 0
    agreeing.void_plan(draft, recorded, (e.Cause(what="replan_ordered", subject="", was="", now=""),))


@HANDLERS.on(e.CancelRequested)
def _cancel(draft: Draft, event: e.CancelRequested, recorded: e.Recorded) -> None:
    draft.cancel_requested = True
    draft.undo_requested = event.undo
    draft.cancelled_by, draft.hands_to = recorded.actor, event.owner


@HANDLERS.on(e.CancelBegan)
def _cancel_began(draft: Draft, event: e.CancelBegan, recorded: e.Recorded) -> None:
    draft.direction, draft.retry_at, draft.failures, draft.replans = s.Direction.UNDO, None, 0, 0
    agreeing.void_request(draft, recorded, (e.Cause(what="cancelled", subject="", was="", now=""),))


@HANDLERS.on(e.PlanCarriedOut)
def _carried_out(draft: Draft, event: e.PlanCarriedOut, recorded: e.Recorded) -> None:
    evolving.carried_out(draft, event, recorded)
    agreeing.consume(draft, recorded)


@HANDLERS.on(e.RunSucceeded)
def _succeeded(draft: Draft, event: e.RunSucceeded, recorded: e.Recorded) -> None:
    agreeing.consume(draft, recorded)


@HANDLERS.on(e.RunCancelled)
def _cancelled(draft: Draft, event: e.RunCancelled, recorded: e.Recorded) -> None:
    if draft.plans and all(step.name in draft.done for step in draft.plans[-1].plan.steps):
        agreeing.consume(draft, recorded)
    agreeing.void_request(draft, recorded, (e.Cause(what="cancelled", subject="", was="", now=""),))
    obligations.handed_over(draft, event)
