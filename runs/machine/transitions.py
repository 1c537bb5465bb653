"""The one table of allowed (state, event) -> state, and of what a person may decide in `needs_human`.

A pair that the table lacks is refused and changes nothing. Evidence is never refused: where no pair fits
it, it is kept by `EvidenceKept`, which every state takes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from runs.machine import events as e
from runs.machine.state import State


class Move(StrEnum):
    """A target that depends on the run and not on the pair alone."""

    SAME = "same"  #: the state stays
    BEFORE = "before"  #: the state from before `unknown` or `needs_human` returns
    SETTLES = "settles"  #: BEFORE once nothing is open and no other reason is left; until then SAME
    REBOUND = "rebound"  #: BEFORE, or planning where the plan ended, once no reason is left; until then SAME


class Decision(StrEnum):
    """What a person may decide on a run in `needs_human`."""

    RECONCILE = "reconcile"
    ATTEST = "attest"  #: state what became of an effect, as a person
    RESUME = "resume"
    MOVE = "move"  #: let another version of the agent go on with the run
    RETRY = "retry"  #: resume, and do the refused effect again in a new round
    REPLAN = "replan"
    RESTART = "restart"  #: close the run; a successor goes on with what stands
    CANCEL = "cancel"


class Refused(Exception):
    """The command is not allowed in this state: nothing changed. `state` and `event` say what was tried."""

    def __init__(self, state: State | None, event: str) -> None:
        self.state, self.event = state, event
        super().__init__(f"{event} is not allowed while the run is {state or 'not started'}")


SAME, BEFORE, SETTLES, REBOUND = Move.SAME, Move.BEFORE, Move.SETTLES, Move.REBOUND

_stop: dict[type[e.Event], State | Move] = {
    e.HumanNeeded: State.NEEDS_HUMAN,
    e.CancelRequested: SAME,
    e.EvidenceKept: SAME,
    e.ArtifactKept: SAME,
    e.HistoryChanged: SAME,
}
_check: dict[type[e.Event], State | Move] = {
    e.ObservationRecorded: SAME,
    e.AttemptFailed: SAME,
    e.RevalidationRefused: SAME,
    e.ApprovalVoided: State.WAITING_APPROVAL,
    e.ApprovalExpired: State.WAITING_APPROVAL,
    e.PlanVoided: State.PLANNING,
    e.CancelBegan: State.CANCELLING,
}

TABLE: Final[dict[State | None, dict[type[e.Event], State | Move]]] = {
    None: {e.RunStarted: State.PLANNING},
    State.PLANNING: {
        **_stop,
        e.ObservationRecorded: SAME,
        e.AttemptFailed: SAME,
        e.ProposalRefused: SAME,
        e.PlanProposed: SAME,
        e.ApprovalRequested: State.WAITING_APPROVAL,
        e.PlanApprovedByPolicy: State.APPROVED,
        e.CancelBegan: State.CANCELLING,
    },
    State.WAITING_APPROVAL: {
        **_stop,
        **_check,
        e.ApprovalRequested: SAME,
        e.ApprovalGiven: SAME,
        e.PlanApproved: State.APPROVED,
        e.PlanRejected: State.NEEDS_HUMAN,
        e.RunRestarted: State.RESTARTED,
        e.ChangesAsked: State.PLANNING,
        e.VersionMoved: REBOUND,
    },
    State.APPROVED: {**_stop, **_check, e.RevalidationPassed: State.EXECUTING},
    State.EXECUTING: {
        **_stop,
        **_check,
        e.RevalidationPassed: SAME,
        e.EffectIntended: SAME,
        e.EffectSent: SAME,
        e.EffectDispatched: SAME,
        e.EffectUnsent: SAME,
        e.EffectAnswered: SAME,
        e.StepAnswered: SAME,
        e.ReceiptStored: SAME,
        e.OutcomeUnknown: State.UNKNOWN,
        e.RunSucceeded: State.SUCCEEDED,
    },
    State.UNKNOWN: {
        **_stop,
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
        e.HumanNeeded: SAME,
        e.EffectQueried: SAME,
        e.ReceiptStored: SETTLES,
        e.EffectReconciled: SETTLES,
        e.EffectAttested: SAME,
        e.AttestationAccepted: SETTLES,
        e.OutcomeUnknown: SAME,
        e.RunRestarted: State.RESTARTED,
        e.RunResumed: BEFORE,
        e.VersionMoved: REBOUND,
        e.ReplanOrdered: State.PLANNING,
        e.CancelBegan: State.CANCELLING,
    },
    State.CANCELLING: {**_stop, e.RunCancelled: State.CANCELLED},
    State.SUCCEEDED: {e.EvidenceKept: SAME, e.ArtifactKept: SAME},
    State.CANCELLED: {e.EvidenceKept: SAME, e.ArtifactKept: SAME},
    State.RESTARTED: {e.EvidenceKept: SAME, e.ArtifactKept: SAME},
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
    "authority_lost": (Decision.RESUME, Decision.RESTART, Decision.CANCEL),
    "constraint_withdrawn": (Decision.RESTART, Decision.CANCEL),
    "budget_exhausted": (Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "resource_changed": (Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "observation_stale": (Decision.RESUME, Decision.RESTART, Decision.CANCEL),
    "postcondition_failed": (Decision.RESTART, Decision.CANCEL),
    "tool_failed": (Decision.RETRY, Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "plan_rejected": (Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "planner_refused": (Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "obligation_open": (Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
    "no_progress": (Decision.RESUME, Decision.RESTART, Decision.CANCEL),
    "asked": (Decision.REPLAN, Decision.RESTART, Decision.CANCEL),
}


def target(state: State | None, event: type[e.Event]) -> State | Move:
    """Where the event leads from the state. Raises Refused for a pair that the table lacks."""
    try:
        return TABLE[state][event]
    except KeyError:
        raise Refused(state, event.__name__) from None


def allows(state: State | None, event: type[e.Event]) -> bool:
    """Whether the table has the pair."""
    return event in TABLE[state]


#: `effect_conflict` with nothing open. A step whose operation another effect holds can be tried or planned anew; what
#: contradicts an effect that is settled gives no safe way to go on.
HELD_ELSEWHERE: Final = (Decision.RESUME, Decision.REPLAN, Decision.CANCEL)
CONTRADICTED: Final = (Decision.CANCEL,)


def allowed_decisions(reasons: tuple[e.Reason, ...], *, open_effects: bool = True) -> tuple[Decision, ...]:
    """Exactly the decisions that all the reasons allow, in the order of the first."""
    if not reasons:
        return ()
    first, *rest = sorted((_allowed_by(r, open_effects) for r in reasons), key=len)
    return tuple(d for d in first if all(d in others for others in rest))


def _allowed_by(reason: e.Reason, open_effects: bool) -> tuple[Decision, ...]:
    if reason.code != "effect_conflict" or open_effects:
        return REASONS[reason.code]
    return CONTRADICTED if reason.subject.startswith("E-") else HELD_ELSEWHERE


def first_reason(reasons: tuple[e.Reason, ...]) -> e.Reason:
    """The reason that decides the next safe action."""
    order = list(REASONS)
    return min(reasons, key=lambda r: order.index(r.code))
