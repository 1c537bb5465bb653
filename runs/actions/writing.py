"""Writing a run's events, and the approvals that they open or end, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from time import monotonic
from uuid import UUID

from django.db import transaction

from accounts.rights import Right
from approvals import decisions as approvals
from approvals.binding import Change
from approvals.models import Request
from approvals.policy import Quorum
from runs.actions import children, relatives
from runs.clock import database_now
from runs.ledger import Guard, append, bind_version
from runs.machine import events as e
from runs.machine import state as s
from runs.models import Run
from runs.rereduction import rebuild_rows


def write(
    state: s.RunState,
    events: Sequence[e.Event],
    *,
    run: Run,
    actor: e.Actor,
    now: datetime,
    token: int | None = None,
    lease: timedelta | None = None,
    guard: Guard | None = None,
) -> s.RunState:
    """`ledger.append`, and the approvals that the events open or end in the same transaction.

    Most events touch no approval: those go out in one statement, with no transaction around it.
    """
    if not any(isinstance(event, _TOUCHES_OTHERS) for event in events):
        new = append(state, events, actor=actor, now=now, token=token, lease=lease, guard=guard)
    else:
        with transaction.atomic():
            new = append(state, events, actor=actor, now=now, token=token, lease=lease, guard=guard)
            _project_requests(state, new, run)
            if any(isinstance(x, e.ProjectionRebuilt) for x in events):
                rebuild_rows(new)
            if new.identity.agent_version != state.identity.agent_version:
                bind_version(new)
                run.agent_version = new.identity.agent_version
            children.start(new, [x for x in events if isinstance(x, e.ChildStarted)], run=run, now=now)
    relatives.tell_on_commit(state, new)
    return new


def write_each(moves: Iterable[tuple[s.RunState, Sequence[e.Event]]], *, actor: e.Actor) -> int:
    """As `write`, for many runs in the caller's transaction, whose events do no more to other tables than to void
    requests: these are voided together. How many runs were written.
    """
    now, began, written = database_now(), monotonic(), 0
    voided: dict[UUID, list[Change]] = {}
    for state, events in moves:
        at = now + timedelta(seconds=monotonic() - began)
        new = append(state, events, actor=actor, now=at)
        voided |= {UUID(x.id): [_change(c) for c in x.causes] for x in _just_voided(state, new)}
        written += 1
    if voided:
        approvals.void_each(causes=voided, now=now)
    return written


def _just_voided(before: s.RunState, after: s.RunState) -> list[s.Request]:
    open_ = {x.id for x in before.requests if x.status in s.OPEN_REQUEST}
    return [x for x in after.requests if x.id in open_ and x.status is s.RequestStatus.VOIDED]


#: Events that move rows of other tables or other runs.
_TOUCHES_OTHERS = (
    e.ApprovalRequested, e.ApprovalVoided, e.ApprovalExpired, e.PlanVoided, e.ReplanOrdered, e.CancelBegan,
    e.RunRestarted, e.RunSucceeded, e.RunCancelled, e.PlanCarriedOut, e.ChildStarted, e.VersionMoved, e.GoalRevised,
    e.ProjectionRebuilt,
    e.ConstraintAccepted, e.ConstraintWithdrawn, e.ConstraintAmended, e.AmendmentAccepted,
)  # fmt: skip


def subject_of(run_id: str, version: int) -> str:
    """What an approval request is about, as `approvals` knows it."""
    return f"{run_id}:{version}"


def _project_requests(before: s.RunState, after: s.RunState, run: Run) -> None:
    """Bring the tables of `approvals` to where the events brought the requests. People's decisions are
    there.
    """
    known = {request.id: request for request in before.requests}
    for request in after.requests:
        old = known.get(request.id)
        if old is None:
            _open(request, run)
        if request.closed_seq is not None and (old is None or old.closed_seq is None):
            _close(request, after.at)


def _open(request: s.Request, run: Run) -> None:
    approvals.open_request(
        id=UUID(request.id), tenant_id=run.tenant_id, subject=subject_of(run.pk, request.version),
        digest=request.digest, conditions=request.conditions, conditions_digest=request.conditions_digest,
        policy_version=request.policy_version, right=Right(request.right), on=run, needed=request.needed,
        excluded={UUID(person): rule for person, rule in request.excluded.items()}, now=request.at,
        expires_at=request.expires_at, not_by=request.not_by,
        quorums=[Quorum(needed=q.needed, groups=q.groups) for q in request.quorums],
    )  # fmt: skip


def _close(request: s.Request, now: datetime) -> None:
    row = Request.objects.get(pk=request.id)
    match request.status:
        case s.RequestStatus.VOIDED:
            approvals.void(request=row, changes=[_change(c) for c in request.causes], now=now)
        case s.RequestStatus.EXPIRED:
            approvals.expire(request=row, now=now)
        case s.RequestStatus.CONSUMED:
            approvals.consume(request=row, now=now)


def _change(cause: e.Cause) -> Change:
    what = f"{cause.what}:{cause.subject}" if cause.subject else cause.what
    return Change(what=what, before=cause.was or None, after=cause.now or None)
