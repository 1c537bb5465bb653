"""What `decide` asks of a request before it writes: is it this one, still open, and may this person?

The functions `refuse_…` raise the error that says why not. They read rows that the caller has locked.
"""

from __future__ import annotations

from datetime import datetime
from typing import cast
from uuid import UUID

from django.db.models import QuerySet

from accounts.models import User
from accounts.rights import Place, Right, why_not_at
from accounts.submissions import alone
from approvals.binding import Change, changes_in
from approvals.models import LEAST_REASON, Decision, Request, RequestState, Verdict
from approvals.outcomes import (
    ConflictError,
    ExpiredError,
    NotAllowedError,
    ReasonMissingError,
    SeparationOfDutiesError,
    StaleError,
    SubmissionReusedError,
)
from approvals.policy import Party
from approvals.quorums import barred

#: The verdict that agrees with what was decided, by the state that it led to.
AGREES = {
    RequestState.VALID: Verdict.APPROVE,
    RequestState.CONSUMED: Verdict.APPROVE,
    RequestState.REJECTED: Verdict.REJECT,
    RequestState.CHANGES_ASKED: Verdict.ASK,
}


def place_of(request: Request) -> Place:
    """The object on which the right to decide must be held."""
    return Place(
        tenant_id=request.tenant_id, object_type_id=request.object_type_id, object_pk=request.object_pk
    )


def approvals_of(request: Request) -> QuerySet[Decision]:
    """The approvals that count for this request."""
    return Decision.objects.filter(request=request, verdict=Verdict.APPROVE, needed=True).order_by("at")


def decisive(request: Request) -> Decision | None:
    """The decision that brought the request where it is; None: the policy, or no decision did."""
    reached = RequestState.VALID if request.state == RequestState.CONSUMED else request.state
    made = Decision.objects.filter(request=request, needed=True, state_after=reached).select_related("person")
    return made.order_by("-at").first()


def same_submission(request: Request, person: User, verdict: Verdict, submission: UUID) -> Decision | None:
    """The decision that this very form made before; raises where the form's id belongs to another."""
    alone(submission)
    first = Decision.objects.filter(submission=submission).first()
    if first and (first.request_id, first.person_id, first.verdict) != (request.pk, person.pk, verdict):
        raise SubmissionReusedError(submission)
    return first


def same_verdict(request: Request, person: User, verdict: Verdict) -> Decision | None:
    """This person's earlier decision of the same kind, by another form."""
    mine = Decision.objects.filter(request=request, person=person, verdict=verdict)
    return mine.order_by("at").first()


def refuse_person(request: Request, person: User) -> None:
    """Raise where this person may not decide, by rights read now, or by a part in what is decided."""
    if denial := why_not_at(person, Right(request.codename), place_of(request)):
        raise NotAllowedError(denial=denial)
    if rule := cast(dict[str, str], request.excluded).get(str(person.pk)):
        raise SeparationOfDutiesError(rule=rule)
    if barred(request.not_by, tenant_id=request.tenant_id, people=[person.pk]):
        raise SeparationOfDutiesError(rule=Party.OTHER_TENANT.value)


def refuse_stale(request: Request, digest: str, conditions_digest: str) -> None:
    """Raise where what the person saw is not what the request is bound to."""
    if request.state == RequestState.VOIDED:
        raise StaleError(changes=changes_in(request.cause))
    seen = {"digest": (digest, request.digest), "conditions": (conditions_digest, request.conditions_digest)}
    changes = tuple(
        Change(what=what, before=before, after=after)
        for what, (before, after) in seen.items()
        if before != after
    )
    if changes:
        raise StaleError(changes=changes)


def refuse_without_words(verdict: Verdict, reason: str) -> None:
    """Raise where a verdict that other people have to understand says too little."""
    if verdict != Verdict.APPROVE and len(reason.strip()) < LEAST_REASON:
        raise ReasonMissingError(verdict)


def agrees_with_outcome(request: Request, verdict: Verdict, now: datetime) -> bool:
    """Whether this verdict comes after one that agrees with it; raises where it comes too late or against
    one.
    """
    state = RequestState(request.state)
    if state == RequestState.EXPIRED or (request.is_open and now >= request.expires_at):
        raise ExpiredError(at=request.expires_at)
    if state == RequestState.PENDING:
        return False
    if AGREES.get(state) == verdict:
        return True
    by = decisive(request)
    raise ConflictError(who=by.person if by else None, when=by.at if by else request.opened_at, what=state)
