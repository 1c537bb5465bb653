"""An approver takes an approval back: nothing more is sent on it, and what it allowed asks anew."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID, uuid4

from django.db import transaction

from accounts.models import User
from accounts.rights import Right
from approvals import decisions as approvals
from approvals.outcomes import AlreadyRecorded, Recorded
from runs import planning
from runs.actions.frame import locked, person_actor
from runs.actions.plans import code_of, request_about
from runs.actions.writing import write
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.models import Run
from runs.outbox import wake_on_commit


def take_back_approval(*, person: User, run_id: str, version: int, reason: str, submission: UUID) -> Recorded:
    """Take one's own approval of a plan version back, until it is consumed.

    A send that was committed before stands; none is made after. The plan version asks for approval anew, at once or
    as soon as nothing is in flight or unknown. Raises NoPlanToDecide, NotOpenError, ReasonMissingError,
    SubmissionReusedError, access.RunNotFound.
    """
    with transaction.atomic():
        run, state, now = locked(person, run_id, Right.VIEW_RUNS)
        request = request_about(run, version, submission)
        outcome = approvals.take_back(
            request=request, person=person, reason=reason, submission=submission, now=now
        )
        if not isinstance(outcome, AlreadyRecorded):
            events = decide.taken_back(state, _made(state, outcome), _again(state, run, now))
            write(state, events, run=run, actor=person_actor(person), now=now)
            wake_on_commit(run_id=run_id, agent=run.agent.name, version=run.agent_version)
    return outcome


def _made(state: s.RunState, outcome: Recorded) -> e.ApprovalTakenBack:
    made, request = outcome.decision, state.requests[-1]
    return e.ApprovalTakenBack(
        request=request.id, version=request.version, digest=request.digest, person=str(made.person_id),
        submission=str(made.submission), reason=made.reason,
    )  # fmt: skip


def _again(state: s.RunState, run: Run, now: datetime) -> decide.Events:
    """The new request. Without the agent's code at hand, which knows the policy, a worker or a person asks."""
    agent = code_of(run)
    if agent is None or state.plan is None:
        return ()
    asks = planning.requirement(state, agent, state.plan.plan)
    return decide.ask_anew(state, requirement=asks, request=str(uuid4()), now=now)
