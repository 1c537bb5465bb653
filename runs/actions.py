"""One function per state change, called by pages, API, tasks and commands. Each writes its event in its
transaction.

A person's action takes the fence and the run's lock, reads, decides, appends. What it is compared with is
what it
decides on (digest, effect, request); the run's bare seq never refuses it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import IntegrityError, transaction

from accounts.fence import fence_shared
from accounts.models import User
from accounts.rights import Right
from approvals import decisions as approvals
from approvals.binding import Change
from approvals.models import Request, Verdict
from approvals.outcomes import AlreadyRecorded, NotNeeded, Outcome, StaleError
from runs import access, agents, binding, planning, sources
from runs.clock import database_now
from runs.ledger import Guard, append, load
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical
from runs.machine.safety import Answered
from runs.machine.transitions import Decision, Refused
from runs.models import CLOSED, Agent, Run, Submission
from runs.outbox import wake_on_commit

ID_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # no I, L, O, U: they are misread


SYSTEM = e.Actor(e.ActorKind.SYSTEM, "sweep", "sweep")


class AlreadyStarted(Exception):
    """A run with this start key exists; nothing was started twice. `run` is that run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        super().__init__(run.pk)


class NoPlanToDecide(Exception):
    """The run has no plan version of this number that a decision could be about."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """What an action did: the run's seq after it, and whether this very form had done it before."""

    run: str
    seq: int
    repeated: bool = False


def person_actor(person: User) -> e.Actor:
    """A person as the author of an event."""
    return e.Actor(e.ActorKind.PERSON, str(person.pk), person.shown_name)


def new_run_id() -> str:
    """`run_` and 12 letters and digits."""
    return "run_" + "".join(secrets.choice(ID_LETTERS) for _ in range(12))


def start_run(
    *,
    agent: Agent,
    version: str,
    goal: str,
    input: dict[str, object],
    start_key: str,
    creator: User,
    principal: User,
    deadline: datetime | None = None,
    wake: bool = True,
) -> Run:
    """Start a run of a registered agent version. Without `wake` the next sweep moves it, as is right for
    thousands at once. Raises AlreadyStarted for a start key that was used before, canonical.Uncanonical for an
    input without canonical form, KeyError for an agent that is not registered.
    """
    registered = agents.registered()[(agent.name, version)]
    with transaction.atomic():
        fence_shared(agent.tenant_id)
        now = database_now()
        run = _new_row(agent, version, goal, start_key, principal, now)
        event = e.RunStarted(
            run=run.pk, tenant=str(agent.tenant_id), agent=agent.name, agent_version=version, goal=goal,
            input=e.raw(canonical(input)), creator=str(creator.pk), principal=str(principal.pk), lineage=run.pk,
            start_key=start_key, constraints=sources.terms_of(registered), deadline=deadline,
        )  # fmt: skip
        append(None, [event], actor=person_actor(creator), now=now)
        if wake:
            wake_on_commit(run_id=run.pk, agent=agent.name, version=version)
    return run


def _new_row(agent: Agent, version: str, goal: str, start_key: str, principal: User, now: datetime) -> Run:
    id_ = new_run_id()
    try:
        with transaction.atomic():
            return Run.objects.create(
                id=id_, tenant_id=agent.tenant_id, agent=agent, agent_version=version, lineage=id_, goal=goal,
                start_key=start_key, principal=principal, created_at=now, since=now, at=now, wake_at=now,
                state=s.State.PLANNING.value,
            )  # fmt: skip
    except IntegrityError as error:
        first = Run.objects.filter(tenant_id=agent.tenant_id, agent=agent, start_key=start_key).first()
        if first is None:
            raise
        raise AlreadyStarted(first) from error


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
    if not any(isinstance(event, _TOUCHES_REQUESTS) for event in events):
        return append(state, events, actor=actor, now=now, token=token, lease=lease, guard=guard)
    with transaction.atomic():
        new = append(state, events, actor=actor, now=now, token=token, lease=lease, guard=guard)
        _project_requests(state, new, run)
    return new


_TOUCHES_REQUESTS = (
    e.ApprovalRequested, e.ApprovalVoided, e.ApprovalExpired, e.PlanVoided, e.ReplanOrdered, e.CancelBegan,
    e.RunRestarted, e.RunSucceeded,
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
        policy_version=request.policy_version, right=Right(request.right), on=run.agent, needed=request.needed,
        excluded={UUID(person): rule for person, rule in request.excluded.items()}, now=request.at,
        expires_at=request.expires_at,
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


def locked(person: User, run_id: str, right: Right) -> tuple[Run, s.RunState, datetime]:
    """Inside a transaction: the fence, the person's right, the run's row lock, its state, and the time.

    Raises access.RunNotFound, access.NotPermitted. Rights are read after the fence, so one that was removed
    a moment
    ago is gone.
    """
    run = access.run_for(person, run_id)
    fence_shared(run.tenant_id)
    run = access.run_for(person, run_id, right)
    Run.objects.select_for_update(of=("self",)).filter(pk=run_id).first()
    return run, load(run_id), database_now()


def repeated(submission: UUID, person: User, action: str) -> Done | None:
    """What this very form did before. Raises Refused where its id belongs to another action."""
    first = Submission.objects.filter(pk=submission).first()
    if first is None:
        return None
    if (first.person_id, first.action) != (person.pk, action):
        raise Refused(None, "a form's id is good for one action")
    return Done(run=first.run_id or "", seq=first.seq or 0, repeated=True)


def _by_person(
    *,
    person: User,
    run_id: str,
    right: Right,
    action: str,
    submission: UUID,
    events_of: Callable[[s.RunState, datetime], Sequence[e.Event]],
) -> Done:
    """The frame of a person's action: once per submission, decided on what is locked, woken after commit."""
    with transaction.atomic():
        run, state, now = locked(person, run_id, right)
        if first := repeated(submission, person, action):
            return first
        new = write(state, events_of(state, now), run=run, actor=person_actor(person), now=now)
        Submission.objects.create(
            id=submission, tenant_id=run.tenant_id, run=run, person=person, action=action, seq=new.seq, at=now
        )
        wake_on_commit(run_id=run_id, agent=run.agent.name, version=run.agent_version)
    return Done(run=run_id, seq=new.seq)


def decide_plan(
    *,
    person: User,
    run_id: str,
    version: int,
    verdict: Verdict,
    reason: str,
    digest: str,
    conditions_digest: str,
    submission: UUID,
) -> Outcome:
    """Record a person's decision on a plan version that their page showed.

    Raises NoPlanToDecide, the errors of `approvals.outcomes`, access.RunNotFound. The right is asked for by
    `approvals`, since the request says which one it takes.
    """
    with transaction.atomic():
        run, state, now = locked(person, run_id, Right.VIEW_RUNS)
        request = (
            Request.objects.filter(tenant_id=run.tenant_id, subject=subject_of(run_id, version))
            .order_by("-opened_at", "-closed_at")
            .first()
        )
        if request is None:
            raise NoPlanToDecide(f"{run_id} v{version}")
        if changes := binding.changed(state, request, _code_of(run)):
            raise StaleError(changes=changes)
        outcome = approvals.decide(
            request=request, person=person, verdict=verdict, reason=reason, digest=digest,
            conditions_digest=conditions_digest, submission=submission, now=now,
        )  # fmt: skip
        if not isinstance(outcome, AlreadyRecorded | NotNeeded):
            write(state, _decision_events(state, outcome), run=run, actor=person_actor(person), now=now)
            wake_on_commit(run_id=run_id, agent=run.agent.name, version=run.agent_version)
    return outcome


def _code_of(run: Run) -> agents.Agent | None:
    """The agent's version of the run, where this process has it."""
    return agents.registered().get((run.agent.name, run.agent_version))


_VERDICTS: dict[Verdict, type[e.ApprovalGiven | e.PlanRejected | e.ChangesAsked]] = {
    Verdict.APPROVE: e.ApprovalGiven,
    Verdict.REJECT: e.PlanRejected,
    Verdict.ASK: e.ChangesAsked,
}


def _decision_events(state: s.RunState, outcome: Outcome) -> list[e.Event]:
    made, request = outcome.decision, state.requests[-1]
    decided = _VERDICTS[Verdict(made.verdict)](
        request=request.id, version=request.version, digest=request.digest, person=str(made.person_id),
        submission=str(made.submission), reason=made.reason,
    )  # fmt: skip
    if made.state_after != s.RequestStatus.VALID.value:
        return [decided]
    return [decided, e.PlanApproved(request=request.id, version=request.version, digest=request.digest)]


def stop_unserved(*, run_id: str, version: str) -> None:
    """Hand a run to a person because no worker serves its agent's version; nothing where it moved meanwhile."""
    with transaction.atomic():
        row = Run.objects.select_related("agent").get(pk=run_id)
        fence_shared(row.tenant_id)
        run = Run.objects.select_for_update(of=("self",)).select_related("agent").get(pk=run_id)
        now = database_now()
        held = run.lease_until is not None and run.lease_until > now
        if held or run.wake_at is None or run.wake_at > now or run.state in CLOSED:
            return
        state = load(run_id)
        events = decide.human("version_unavailable", subject=run.agent.name, evidence=version)
        write(state, events, run=run, actor=SYSTEM, now=now)


def renew_request(*, person: User, run_id: str, request: UUID, submission: UUID) -> Done:
    """Ask for approval of the latest plan version anew, where the request before expired or was voided."""

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        if state.request and state.request.status in s.OPEN_REQUEST:
            raise Refused(state.state, "ApprovalRequested")
        agent = agents.registered()[(state.identity.agent, state.identity.agent_version)]
        if state.plan is None or state.state is not s.State.WAITING_APPROVAL:
            raise Refused(state.state, "ApprovalRequested")
        asks = planning.requirement(state, agent, state.plan.plan)
        again = decide.requested(
            state.plan.plan, state.plan.digest, requirement=asks, request=str(request), now=now
        )
        return [again]

    return _by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action="renew", submission=submission,
        events_of=events_of,
    )  # fmt: skip


def record_answer(
    *, person: User, run_id: str, effect: int, answer: Answered, evidence: str, submission: UUID
) -> Done:
    """Store what the outside answered to a person's question about an effect. Concludes nothing."""
    return _by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action="ask", submission=submission,
        events_of=lambda state, now: decide.asked_by_person(state, effect, answer, evidence=evidence),
    )  # fmt: skip


def conclude_effect(
    *, person: User, run_id: str, effect: int, happened: bool, asked: int, note: str, submission: UUID
) -> Done:
    """Record what became of an unknown effect, from the answer in event `asked`. Raises
    decide.ConclusionRefused.
    """
    return _by_person(
        person=person, run_id=run_id, right=Right.RECONCILE_EFFECTS, action="conclude", submission=submission,
        events_of=lambda state, now: decide.concluded(
            state, effect, happened=happened, asked_seq=asked, note=note, now=now
        ),
    )  # fmt: skip


def decide_run(*, person: User, run_id: str, decision: Decision, note: str, submission: UUID) -> Done:
    """Resume, retry or replan a run in `needs_human`. Raises Refused for what its reasons do not allow."""
    return _by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action=decision.value, submission=submission,
        events_of=lambda state, now: decide.decided(state, decision, note=note),
    )  # fmt: skip


def attest_effect(
    *, person: User, run_id: str, effect: int, happened: bool, reference: str, how: str, submission: UUID
) -> Done:
    """State, as a person, what became of an unknown effect. Raises decide.ConclusionRefused with what is missing.

    Where the effect cannot be undone it stays unknown until a second person states the same.
    """
    return _by_person(
        person=person, run_id=run_id, right=Right.ATTEST_EFFECTS, action="attest", submission=submission,
        events_of=lambda state, now: decide.attested(
            state, effect, happened=happened, reference=reference, how=how, person=str(person.pk), now=now
        ),
    )  # fmt: skip


def restart_run(*, person: User, run_id: str, note: str, submission: UUID) -> Done:
    """Close the run and start its one successor, in one transaction. `Done.run` is the successor.

    It takes over the committed goal, the constraints in force, open obligations, and what stands; no approval. Raises
    Refused where something is in flight or unknown, or where the run has ended or been restarted already.
    """
    with transaction.atomic():
        run, state, now = locked(person, run_id, Right.OPERATE_RUNS)
        if repeated(submission, person, "restart"):
            return Done(run=state.successor, seq=state.seq, repeated=True)
        successor = new_run_id()
        closed = write(
            state,
            decide.restarted(state, successor=successor, note=note),
            run=run,
            actor=person_actor(person),
            now=now,
        )
        _start_successor(run, closed, successor, person, now)
        Submission.objects.create(
            id=submission,
            tenant_id=run.tenant_id,
            run=run,
            person=person,
            action="restart",
            seq=closed.seq,
            at=now,
        )
    return Done(run=successor, seq=closed.seq)


def _start_successor(run: Run, closed: s.RunState, successor: str, person: User, now: datetime) -> None:
    version, code = _version_for(run)
    became = sources.standing(code, closed.constraints)
    key = f"restart of {run.pk}"
    Run.objects.create(
        id=successor, tenant_id=run.tenant_id, agent=run.agent, agent_version=version, lineage=run.lineage,
        predecessor=run, goal=closed.goal.text, start_key=key, principal=run.principal, created_at=now, since=now,
        at=now, wake_at=now, state=s.State.PLANNING.value,
    )  # fmt: skip
    event = e.RunStarted(
        run=successor, tenant=str(run.tenant_id), agent=run.agent.name, agent_version=version, goal=closed.goal.text,
        input=e.raw(closed.identity.input), creator=str(person.pk), principal=closed.identity.principal,
        lineage=run.lineage, start_key=key,
        constraints=tuple(c.term for c in closed.constraints if not became[c.number]),
        predecessor=run.pk, inherited=decide.inherited(closed), rounds=dict(closed.rounds),
        obligations=tuple(e.Owed(text=o.text, by=o.by, due_at=o.due_at) for o in closed.open_obligations),
    )  # fmt: skip
    append(None, [event], actor=person_actor(person), now=now)
    wake_on_commit(run_id=successor, agent=run.agent.name, version=version)


def _version_for(run: Run) -> tuple[str, agents.Agent]:
    """The run's own agent version where this process has it, else the newest one that it has. Raises KeyError."""
    here = {version: code for (name, version), code in agents.registered().items() if name == run.agent.name}
    if not here:
        raise KeyError(run.agent.name)
    version = run.agent_version if run.agent_version in here else max(here)
    return version, here[version]


def cancel_run(*, person: User, run_id: str, note: str, submission: UUID) -> Done:
    """End the run: now, or as soon as what is in flight or unknown is settled."""
    return _by_person(
        person=person, run_id=run_id, right=Right.CANCEL_RUNS, action="cancel", submission=submission,
        events_of=lambda state, now: decide.cancel(state, note=note),
    )  # fmt: skip
