"""What people decide about a plan version, and asking for that anew."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.reauthentication import require_recent
from accounts.rights import Denial, Right, why_not
from approvals import decisions as approvals
from approvals.checks import same_submission
from approvals.models import Request, Verdict
from approvals.outcomes import (
    AlreadyRecorded,
    CheckFailedError,
    GroundMissingError,
    NotAllowedError,
    NotNeeded,
    Outcome,
    StaleError,
)
from approvals.policy import CheckKind
from runs import access, agents, binding, grants, planning
from runs.actions.frame import Done, by_person, locked, person_actor
from runs.actions.opening import refuse_unopened
from runs.actions.writing import subject_of, write
from runs.machine import decide, expiry
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.hidden import hides
from runs.machine.transitions import Refused
from runs.models import Run
from runs.outbox import wake_on_commit


class NoPlanToDecide(Exception):
    """The run has no plan version of this number that a decision could be about."""


def request_about(run: Run, version: int, submission: UUID) -> Request:
    """The request about the plan version that this very form decided before, else the newest. Raises NoPlanToDecide."""
    asked = Request.objects.filter(tenant_id=run.tenant_id, subject=subject_of(run.pk, version))
    if before := asked.filter(decisions__submission=submission).first():
        return before
    if (found := asked.order_by("-opened_at", "-closed_at").first()) is None:
        raise NoPlanToDecide(f"{run.pk} v{version}")
    return found


class NothingToChange(Refused):
    """Changes were asked for to a plan that undoes. Code makes it from what stands, so nobody's words change it."""

    def __str__(self) -> str:
        return _(
            "A plan that undoes is made by code from what stands. No changes can be asked for: approve it or reject it."
        )


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
    signed_in_at: datetime | None = None,
    overrides: Collection[str] = (),
) -> Outcome:
    """Record a person's decision on a plan version that their page showed.

    `overrides` are the soft checks that fail and that the person knows of: with any of them an approval needs words.

    `signed_in_at` is when the person last proved who they are: too long ago to approve what cannot be undone raises
    ReauthenticationNeeded. Raises NoPlanToDecide, NothingToChange, the errors of `approvals.outcomes`,
    access.RunNotFound. The right is asked for by `approvals`, since the request says which one it takes.
    """
    with transaction.atomic():
        run, state, now = locked(person, run_id, Right.VIEW_RUNS)
        request = request_about(run, version, submission)
        if first := same_submission(request, person, verdict, submission):
            # Said before anything else: whatever changed since, this form was recorded.
            return AlreadyRecorded(request=request, decision=first)
        if verdict is Verdict.ASK and state.undoing:
            raise NothingToChange(state.state, e.ChangesAsked.__name__)
        if changes := binding.changed(state, request, code_of(run)):
            raise StaleError(changes=changes)
        if verdict is Verdict.APPROVE and (denial := _cannot_see(person, run, state)):
            raise NotAllowedError(denial=denial)
        outcome = approvals.decide(
            request=request, person=person, verdict=verdict, reason=reason, digest=digest,
            conditions_digest=conditions_digest, submission=submission, now=now,
        )  # fmt: skip
        if not isinstance(outcome, AlreadyRecorded | NotNeeded):
            if verdict is Verdict.APPROVE:
                refuse_unopened(run, state, person)
                _refuse_groundless(state)
            if verdict is Verdict.APPROVE and _cannot_be_undone(state):
                require_recent(signed_in_at=signed_in_at, now=now)
            known = _overridden(state, run, verdict, overrides, reason)
            events = _decision_events(state, outcome, known)
            write(state, events, run=run, actor=person_actor(person), now=now)
            wake_on_commit(run_id=run_id, agent=run.agent.name, version=run.agent_version)
    return outcome


def _cannot_see(person: User, run: Run, state: s.RunState) -> Denial | None:
    """Why the person may not see all that an approval would be of: nobody approves what is hidden from them."""
    if state.plan is None or not hides(state.plan.plan):
        return None
    return why_not(person, Right.SEE_VALUES, run)


def _refuse_groundless(state: s.RunState) -> None:
    """Raise GroundMissingError where the run's authority is over, or what the plan rests on was never read."""
    if why := grants.still_lent(state)[0]:
        over = _("what the run acts on is over. It has to be lent anew, and then people are asked again.")
        raise GroundMissingError(what=f"authority: {why}", why=over)
    if unread := binding.never_read(state):
        text = _("%(resource)s, on which the plan rests, was never read.") % {"resource": unread[0].resource}
        raise GroundMissingError(what=f"observations: {unread[0].resource}", why=text)


def _cannot_be_undone(state: s.RunState) -> bool:
    """Whether the plan holds a change that an approver confirms by its phrase."""
    return state.plan is not None and any(step.phrase for step in state.plan.plan.steps)


def code_of(run: Run) -> agents.Agent | None:
    """The agent's version of the run, where this process has it."""
    return agents.registered().get((run.agent.name, run.agent_version))


_VERDICTS: dict[Verdict, type[e.ApprovalGiven | e.PlanRejected | e.ChangesAsked]] = {
    Verdict.APPROVE: e.ApprovalGiven,
    Verdict.REJECT: e.PlanRejected,
    Verdict.ASK: e.ChangesAsked,
}


def _overridden(
    state: s.RunState, run: Run, verdict: Verdict, overrides: Collection[str], reason: str
) -> tuple[str, ...]:
    """The failing checks that an approval overrides. Raises CheckFailedError for one that it does not."""
    if verdict is not Verdict.APPROVE or state.plan is None:
        return ()
    failed = planning.unpassed(state, state.plan, code_of(run))
    for check in failed:
        hard = check.kind == CheckKind.HARD
        if hard or check.name not in overrides or not reason.strip():
            raise CheckFailedError(name=check.name, must=check.sentence, hard=hard)
    return tuple(check.name for check in failed)


def _decision_events(state: s.RunState, outcome: Outcome, overrides: tuple[str, ...]) -> list[e.Event]:
    made, request = outcome.decision, state.requests[-1]
    decided = _VERDICTS[Verdict(made.verdict)](
        request=request.id, version=request.version, digest=request.digest, person=str(made.person_id),
        submission=str(made.submission), reason=made.reason, **({"overrides": overrides} if overrides else {}),
    )  # fmt: skip
    if made.state_after != s.RequestStatus.VALID.value:
        return [decided]
    return [decided, e.PlanApproved(request=request.id, version=request.version, digest=request.digest)]


def _code_missing(identity: s.Identity) -> GroundMissingError:
    text = _(
        "the code of version %(version)s of %(agent)s is not here, and its policy says who is asked. Have it installed "
        "again, or move the run to another version."
    )
    facts = {"agent": identity.agent, "version": identity.agent_version}
    return GroundMissingError(what=f"code: {identity.agent} {identity.agent_version}", why=text % facts)


def renew_request(*, person: User, run_id: str, request: UUID, submission: UUID) -> Done:
    """Ask for approval of the latest plan version anew, where the request before expired or was voided.

    Takes the right to operate the run, or the right to approve its plans: who may decide may ask that it be decided.
    Raises GroundMissingError where this process has not the code that says who is asked, Refused.
    """

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        over = expiry.recorded(state, now) if state.request and now >= state.request.expires_at else ()
        if state.request and state.request.status in s.OPEN_REQUEST and not over:
            raise Refused(state.state, "ApprovalRequested")
        if state.plan is None or state.state is not s.State.WAITING_APPROVAL:
            raise Refused(state.state, "ApprovalRequested")
        agent = agents.registered().get((state.identity.agent, state.identity.agent_version))
        if agent is None:
            raise _code_missing(state.identity)
        asks = planning.requirement(state, agent, state.plan.plan)
        again = decide.requested(
            state, state.plan.plan, state.plan.digest, requirement=asks, request=str(request), now=now
        )
        return [*over, again]

    approves = not why_not(person, Right.APPROVE_PLANS, access.run_for(person, run_id))
    right = Right.APPROVE_PLANS if approves else Right.OPERATE_RUNS
    return by_person(
        person=person, run_id=run_id, right=right, action="renew", submission=submission, events_of=events_of,
    )  # fmt: skip
