"""The one table of allowed (state, event) -> state, and of what a person may decide in `needs_human`.

A pair that the table lacks is refused and changes nothing. Evidence is never refused: where no pair fits
it, it is kept by `EvidenceKept`, which every state takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from runs.machine import events as e
from runs.machine.state import Direction, State


class Move(StrEnum):
    """A target that depends on the run and not on the pair alone."""

    SAME = "same"  #: the state stays
    BEFORE = "before"  #: the state from before `unknown` or `needs_human` returns
    ONWARD = "onward"  #: executing, or compensating in direction `undo`
    REPLANS = "replans"  #: planning, or cancelling in direction `undo`, where code plans
    SETTLES = "settles"  #: BEFORE once nothing is open and no other reason is left; until then SAME
    RESTORES = "restores"  #: the state of the checkpoint; `unknown` where something was in flight
    REBOUND = "rebound"  #: BEFORE, or planning where the plan ended, once no reason is left; until then SAME


class Decision(StrEnum):
    """What a person may decide on a run in `needs_human`."""

    RECONCILE = "reconcile"
    ATTEST = "attest"  #: state what became of an effect, as a person
    SETTLE = "settle"  #: find which is true, the record or evidence that came later
    RESUME = "resume"
    LEND = "lend"  #: lend authority or money anew
    ACCEPT = "accept"  #: take for this run what the source of a constraint states now
    MOVE = "move"  #: let another version of the agent go on with the run
    RETRY = "retry"  #: resume, and do the refused effect again in a new round
    REPLAN = "replan"
    RESTART = "restart"  #: close the run; a successor goes on with what stands
    CANCEL = "cancel"
    END = "end"  #: in direction `undo`: the run ends now, and what was not undone stands


class Refused(Exception):
    """The command is not allowed in this state: nothing changed. `state` and `event` say what was tried."""

    def __init__(self, state: State | None, event: str) -> None:
        self.state, self.event = state, event
        super().__init__(f"{event} is not allowed while the run is {state or 'not started'}")


SAME, BEFORE, SETTLES, REBOUND = Move.SAME, Move.BEFORE, Move.SETTLES, Move.REBOUND
ONWARD, REPLANS = Move.ONWARD, Move.REPLANS

#: Targets that the run's direction decides.
BY_DIRECTION: Final[dict[Move, dict[Direction, State]]] = {
    ONWARD: {Direction.FORWARD: State.EXECUTING, Direction.UNDO: State.COMPENSATING},
    REPLANS: {Direction.FORWARD: State.PLANNING, Direction.UNDO: State.CANCELLING},
}

_stop: dict[type[e.Event], State | Move] = {
    e.HumanNeeded: State.NEEDS_HUMAN,
    e.CancelRequested: SAME,
    e.EvidenceKept: SAME,
    e.ArtifactKept: SAME,
    e.InheritedLost: SAME,
    e.HistoryChanged: SAME,
    e.SignalReceived: SAME,
    e.ChildReplaced: SAME,
    e.ChildEnded: SAME,
    e.ChecksMade: SAME,
    e.ObligationOpened: SAME,
    e.ObligationAttested: SAME,
    e.ObligationHandedOn: SAME,
    e.ObligationOverdue: SAME,
    e.ObservationReread: SAME,
    e.ConstraintConfirmed: SAME,
}
_ends: dict[type[e.Event], State | Move] = {e.ExpiryAnnounced: SAME, e.ApprovalExpired: SAME}
_check: dict[type[e.Event], State | Move] = {
    e.ObservationRecorded: SAME,
    e.AttemptFailed: SAME,
    e.RevalidationRefused: SAME,
    e.ProjectionRebuilt: SAME,
    e.ApprovalTakenBack: SAME,
    e.ApprovalRequested: State.WAITING_APPROVAL,
    e.ApprovalVoided: State.WAITING_APPROVAL,
    e.ApprovalRequested: State.WAITING_APPROVAL,
    e.ApprovalExpired: State.WAITING_APPROVAL,
    e.PlanVoided: REPLANS,
    e.CancelBegan: State.CANCELLING,
}
#: What people or sources do to a run's contract. The plan in hand ends with it, at once or at the safe point.
_contract: dict[type[e.Event], State | Move] = {
    e.GoalRevised: REBOUND,
    e.ConstraintAccepted: REBOUND,
    e.ConstraintWithdrawn: REBOUND,
    e.ConstraintAmended: REBOUND,
}
_told: dict[type[e.Event], State | Move] = dict.fromkeys(_contract, SAME)
#: While a run ends it is told of its constraints, and nothing follows.
_ending: dict[type[e.Event], State | Move] = {e.ConstraintWithdrawn: SAME, e.ConstraintAmended: SAME}
_send: dict[type[e.Event], State | Move] = {
    e.RevalidationPassed: SAME,
    e.EffectIntended: SAME,
    e.EffectSent: SAME,
    e.EffectDispatched: SAME,
    e.EffectUnsent: SAME,
    e.EffectAnswered: SAME,
    e.StepAnswered: SAME,
    e.ReceiptStored: SAME,
    e.OutcomeUnknown: State.UNKNOWN,
}
_over: dict[type[e.Event], State | Move] = {
    e.EvidenceKept: SAME,
    e.ArtifactKept: SAME,
    e.EffectCompensated: SAME,
    e.ContradictionStated: SAME,
    e.ContradictionSettled: SAME,
    e.ObligationAttested: SAME,
    e.ObligationHandedOn: SAME,
    e.ObligationOverdue: SAME,
}

TABLE: Final[dict[State | None, dict[type[e.Event], State | Move]]] = {
    None: {e.RunStarted: State.PLANNING, e.RunTakenIn: Move.RESTORES},
    State.PLANNING: {
        **_stop,
        e.ObservationRecorded: SAME,
        e.AttemptFailed: SAME,
        e.ProposalRefused: SAME,
        e.PlanProposed: SAME,
        e.ApprovalRequested: State.WAITING_APPROVAL,
        e.PlanApprovedByPolicy: State.APPROVED,
        **_told,
        e.CancelBegan: State.CANCELLING,
    },
    State.WAITING_APPROVAL: {
        **_stop,
        **_ends,
        **_check,
        e.ApprovalGiven: SAME,
        e.PlanApproved: State.APPROVED,
        e.PlanRejected: State.NEEDS_HUMAN,
        e.RunRestarted: State.RESTARTED,
        e.ChangesAsked: State.PLANNING,
        e.VersionMoved: REBOUND,
        **_contract,
        e.AuthorityLent: REBOUND,
    },
    State.APPROVED: {**_stop, **_check, e.RevalidationPassed: ONWARD, **_contract},
    State.EXECUTING: {
        **_stop,
        **_check,
        **_send,
        **_contract,
        e.ChildStarted: SAME,
        e.WaitBegan: State.WAITING,
        e.WaitEnded: SAME,
        e.PlanCarriedOut: State.PLANNING,
        e.RunSucceeded: State.SUCCEEDED,
    },
    State.WAITING: {
        **_stop,
        **_ends,
        e.ApprovalTakenBack: SAME,
        e.ChildStarted: SAME,
        e.WaitEnded: State.EXECUTING,
        **_contract,
        e.PlanVoided: REPLANS,
        e.CancelBegan: State.CANCELLING,
    },
    State.UNKNOWN: {
        **_stop,
        **_ends,
        e.ApprovalTakenBack: SAME,
        **_told,
        e.EffectQueried: SAME,
        e.OutcomeUnknown: SAME,
        e.EffectSent: SAME,
        e.EffectDispatched: SAME,
        e.EffectUnsent: SETTLES,
        e.ReceiptStored: SETTLES,
        e.EffectReconciled: SETTLES,
        e.EffectAttested: SAME,
        e.AttestationAccepted: SETTLES,
    },
    State.NEEDS_HUMAN: {
        **_stop,
        **_ends,
        e.ApprovalTakenBack: SAME,
        e.HumanNeeded: SAME,
        e.EffectQueried: SAME,
        e.ReceiptStored: SETTLES,
        e.EffectReconciled: SETTLES,
        e.EffectAttested: SAME,
        e.AttestationAccepted: SETTLES,
        e.ContradictionStated: SAME,
        e.ContradictionSettled: SETTLES,
        e.OutcomeUnknown: SAME,
        e.RunRestarted: State.RESTARTED,
        e.RunResumed: BEFORE,
        e.VersionMoved: REBOUND,
        **_contract,
        e.AmendmentAccepted: REBOUND,
        e.AuthorityLent: REBOUND,
        e.ObligationAttested: REBOUND,
        e.ReplanOrdered: REPLANS,
        e.CancelBegan: State.CANCELLING,
        e.RunCancelled: State.CANCELLED,
    },
    State.CANCELLING: {
        **_stop,
        **_ending,
        e.PlanProposed: SAME,
        e.ApprovalRequested: State.WAITING_APPROVAL,
        e.PlanApprovedByPolicy: State.APPROVED,
        e.RunCancelled: State.CANCELLED,
    },
    State.COMPENSATING: {**_stop, **_check, **_send, **_ending, e.RunCancelled: State.CANCELLED},
    State.SUCCEEDED: {**_over},
    State.CANCELLED: {**_over},
    State.RESTARTED: {**_over},
}

#: Reasons in the order in which they decide the next safe action, with the decisions that each allows.
REASONS: Final[dict[str, tuple[Decision, ...]]] = {
    "log_damaged": (Decision.CANCEL,),
    "history_lost": (Decision.RESUME, Decision.CANCEL),
    "effect_unknown": (Decision.RECONCILE, Decision.ATTEST, Decision.CANCEL),
    "effect_conflict": (Decision.RECONCILE, Decision.ATTEST, Decision.CANCEL),
    "schema_incompatible": (Decision.RESTART, Decision.CANCEL),
    "version_unavailable": (Decision.RESUME, Decision.MOVE, Decision.RESTART, Decision.CANCEL),
    "deadline_passed": (Decision.CANCEL,),
    "constraint_withdrawn": (Decision.RESTART, Decision.CANCEL),
    "constraint_amended": (Decision.ACCEPT, Decision.RESTART, Decision.CANCEL),
    "authority_lost": (Decision.LEND, Decision.RESUME, Decision.RESTART, Decision.CANCEL),
    "budget_exhausted": (Decision.LEND, Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "resource_changed": (Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "out_of_bounds": (Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "observation_stale": (Decision.RESUME, Decision.RESTART, Decision.CANCEL),
    "postcondition_failed": (Decision.RESTART, Decision.CANCEL),
    "tool_failed": (Decision.RETRY, Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "plan_rejected": (Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "planner_refused": (Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "obligation_open": (Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "no_progress": (Decision.RESUME, Decision.RESTART, Decision.CANCEL),
    "asked": (Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "signal_missing": (Decision.RESUME, Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "child_stopped": (Decision.RETRY, Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "compensation_failed": (Decision.RETRY, Decision.RESTART, Decision.CANCEL),
}

#: What a revised goal is an answer to: the plan that was rejected, what the planner found no plan for, what it asked.
#: Every other reason is about the world, which a goal does not change.
ANSWERED_BY_GOAL: Final = frozenset({"plan_rejected", "planner_refused", "asked"})


def target(state: State | None, event: type[e.Event]) -> State | Move:
    """Where the event leads from the state. Raises Refused for a pair that the table lacks."""
    try:
        return TABLE[state][event]
    except KeyError:
        raise Refused(state, event.__name__) from None


def states_of(target: State | Move) -> tuple[State, ...]:
    """The states that a target of the table can be, as far as the table alone says."""
    return (target,) if isinstance(target, State) else tuple(BY_DIRECTION.get(target, {}).values())


def allows(state: State | None, event: type[e.Event]) -> bool:
    """Whether the table has the pair."""
    return event in TABLE[state]


#: `effect_conflict` with nothing open. A step whose operation another effect holds can be tried or planned anew; where
#: evidence contradicts an effect that is settled, a person finds which is true before the run goes on.
HELD_ELSEWHERE: Final = (Decision.RESUME, Decision.REPLAN, Decision.CANCEL)
CONTRADICTED: Final = (Decision.SETTLE, Decision.CANCEL)


def allowed_decisions(
    reasons: tuple[e.Reason, ...],
    *,
    open_effects: bool = True,
    open_children: bool = False,
    undoing: bool = False,
    contradicted: bool = False,
) -> tuple[Decision, ...]:
    """Exactly the decisions that all the reasons allow, in the order of the first."""
    if not reasons:
        return ()
    first, *rest = sorted((_allowed_by(r, open_effects, contradicted) for r in reasons), key=len)
    common = (d for d in first if all(d in others for others in rest))
    if open_children:
        common = (d for d in common if d not in _NOT_WITH_CHILDREN)
    return tuple(_in_undo(common, open_effects)) if undoing else tuple(common)


#: Each would leave a run behind that goes on by itself and that nobody waits for.
_NOT_WITH_CHILDREN: Final = (Decision.REPLAN, Decision.RETRY, Decision.RESTART)


def _in_undo(decisions: Iterable[Decision], open_effects: bool) -> Iterator[Decision]:
    """A run that is ending cannot be cancelled again: it is ended as it stands, once nothing is open."""
    for decision in decisions:
        if decision is not Decision.CANCEL:
            yield decision
        elif not open_effects:
            yield Decision.END


#: The subject of `log_damaged` where the log is whole and the rows beside it are not what it says: they are made anew
#: from it by a re-reduction, and then the run goes on.
ROWS: Final = "rows"
_ROWS_DIFFER: Final = (Decision.RESUME, Decision.CANCEL)


#: The evidence of `authority_lost` where what is missing is not what was lent but somebody who may approve: what comes
#: first then is to try again, once somebody may.
NO_APPROVER: Final = "nobody may approve it"
_WITHOUT_APPROVER: Final = (Decision.RESUME, Decision.LEND, Decision.RESTART, Decision.CANCEL)


def _allowed_by(reason: e.Reason, open_effects: bool, contradicted: bool) -> tuple[Decision, ...]:
    if (reason.code, reason.evidence) == ("authority_lost", NO_APPROVER):
        return _WITHOUT_APPROVER
    if (reason.code, reason.subject) == ("log_damaged", ROWS):
        return _ROWS_DIFFER
    if reason.code != "effect_conflict" or open_effects:
        return REASONS[reason.code]
    return CONTRADICTED if contradicted else HELD_ELSEWHERE


def first_reason(reasons: tuple[e.Reason, ...]) -> e.Reason:
    """The reason that decides the next safe action."""
    order = list(REASONS)
    return min(reasons, key=lambda r: order.index(r.code))
