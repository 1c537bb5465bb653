"""Asking for agreement, deciding, and what ends it.

All run in the caller's transaction, in which the caller holds the tenant's fence and the lock of whatever the
subject stands for; the request's own row is locked last. All ids and times are the caller's, since these
tables are projections of its events: `now` is the time of the event that says the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection

from accounts.models import User
from accounts.rights import Place, Right, Tenanted
from approvals.binding import Change, cause_of
from approvals.checks import (
    agrees_with_outcome,
    approvals_of,
    decisive,
    refuse_person,
    refuse_stale,
    refuse_without_words,
    same_submission,
    same_verdict,
)
from approvals.models import OPEN_STATES, Decision, Request, RequestState, Verdict
from approvals.outcomes import (
    AlreadyOpenError,
    AlreadyRecorded,
    ExpiredError,
    NotNeeded,
    NotOpenError,
    Outcome,
    Recorded,
    StaleError,
)
from approvals.policy import Quorum
from approvals.quorums import stored, unmet
from approvals.standing import standing


def open_request(
    *,
    id: UUID,
    tenant_id: UUID,
    subject: str,
    digest: str,
    conditions: str,
    conditions_digest: str,
    policy_version: str,
    right: Right,
    on: Tenanted,
    needed: int,
    excluded: Mapping[UUID, str],
    now: datetime,
    expires_at: datetime,
    quorums: Sequence[Quorum] = (),
    not_by: Sequence[str] = (),
) -> Request:
    """Ask the holders of `right` on `on` to agree to `digest` under `conditions` (canonical JSON text of an
    object).

    With `needed` 0 the policy approves: the request is valid at once. `excluded` maps the people who may not
    decide to the rule that says so; `not_by` names the parties that are looked up whenever it counts. It is granted
    when `needed` people approved and each of the `quorums` is met. Raises AlreadyOpenError where the subject
    has an open request.
    """
    if earlier := Request.objects.filter(tenant_id=tenant_id, subject=subject, state__in=OPEN_STATES).first():
        raise AlreadyOpenError(request=earlier)
    place = Place.of(on)
    if place.tenant_id != tenant_id:
        raise ValueError("on: belongs to another tenant than the request")
    return Request.objects.create(
        id=id,
        tenant_id=tenant_id,
        subject=subject,
        digest=digest,
        conditions=conditions,
        conditions_digest=conditions_digest,
        policy_version=policy_version,
        codename=right.value,
        object_type_id=place.object_type_id,
        object_pk=place.object_pk,
        needed=needed,
        excluded={str(person): rule for person, rule in excluded.items()},
        quorums=stored(quorums),
        not_by=list(not_by),
        opened_at=now,
        expires_at=expires_at,
        state=RequestState.PENDING if needed else RequestState.VALID,
    )


def decide(
    *,
    request: Request,
    person: User,
    verdict: Verdict,
    reason: str,
    digest: str,
    conditions_digest: str,
    submission: UUID,
    now: datetime,
) -> Outcome:
    """Record what a person decided on what their page showed (`digest`, `conditions_digest`).

    Rights are read afresh, also those of who approved before: where one of them may not any more the request has to
    be voided and asked anew. Raises a DecisionRefusedError that says why nothing was written. The caller has
    compared the request with what is true now (`binding_changes`) and voided it where that differs.
    """
    request = locked(request)
    if first := same_submission(request, person, verdict, submission):
        return AlreadyRecorded(request=request, decision=first)
    refuse_person(request, person)
    refuse_stale(request, digest, conditions_digest)
    late = agrees_with_outcome(request, verdict, now)
    if first := same_verdict(request, person, verdict):
        return AlreadyRecorded(request=request, decision=first)
    refuse_without_words(verdict, reason)
    approved = list(approvals_of(request).values_list("person_id", flat=True))
    given = len(approved)
    if verdict == Verdict.APPROVE and approved and not late:
        _refuse_lapsed(request, now)
    state = RequestState(request.state) if late else _state_after(request, verdict, [*approved, person.pk])
    decision = record_decision(
        request=request,
        person=person,
        verdict=verdict,
        reason=reason,
        digest=digest,
        conditions_digest=conditions_digest,
        submission=submission,
        now=now,
        needed=not late,
        state_after=state,
        approvals_after=given + (verdict == Verdict.APPROVE and not late),
    )
    if late:
        return NotNeeded(request=request, decision=decision, by=decisive(request))
    return Recorded(request=request, decision=decision)


def record_decision(
    *,
    request: Request,
    person: User,
    verdict: Verdict,
    reason: str,
    digest: str,
    conditions_digest: str,
    submission: UUID,
    now: datetime,
    needed: bool,
    state_after: RequestState,
    approvals_after: int,
) -> Decision:
    """Store a decision and its effect, without judging it: the second half of `decide`, and what a rebuild
    calls.
    """
    decision = Decision.objects.create(
        submission=submission,
        tenant_id=request.tenant_id,
        request=request,
        person=person,
        verdict=verdict,
        reason=reason,
        at=now,
        digest=digest,
        conditions_digest=conditions_digest,
        needed=needed,
        state_after=state_after,
        approvals_after=approvals_after,
    )
    if needed and state_after != request.state:
        _move(request, state_after, now)
    return decision


def take_back(*, request: Request, person: User, reason: str, submission: UUID, now: datetime) -> Recorded:
    """Take one's own approval back, until it is consumed. It ends the request: what it asked is asked anew.

    Needs no right, since it only takes away. Raises NotOpenError where there is nothing of this person's to
    take back, ReasonMissingError.
    """
    request = locked(request)
    if first := same_submission(request, person, Verdict.TAKE_BACK, submission):
        return AlreadyRecorded(request=request, decision=first)
    refuse_without_words(Verdict.TAKE_BACK, reason)
    given = approvals_of(request)
    if not request.is_open or not given.filter(person=person).exists():
        raise NotOpenError(state=RequestState(request.state))
    decision = record_decision(
        request=request,
        person=person,
        verdict=Verdict.TAKE_BACK,
        reason=reason,
        digest=request.digest,
        conditions_digest=request.conditions_digest,
        submission=submission,
        now=now,
        needed=True,
        state_after=RequestState.TAKEN_BACK,
        approvals_after=given.count() - 1,
    )
    return Recorded(request=request, decision=decision)


def void(*, request: Request, changes: Sequence[Change], now: datetime) -> Request:
    """End an open request because what it was bound to changed. Raises NotOpenError where it is over."""
    if not changes:
        raise ValueError("changes: a request is voided because of something; name it")
    request = locked(request)
    if not request.is_open:
        raise NotOpenError(state=RequestState(request.state))
    return _move(request, RequestState.VOIDED, now, changes)


def void_each(*, causes: Mapping[UUID, Sequence[Change]], now: datetime) -> None:
    """As `void`, for many requests in one statement. Raises NotOpenError where one of them is over."""
    said = [json.dumps(cause_of(changes)) for changes in causes.values()]
    with connection.cursor() as cursor:
        cursor.execute(_VOID_EACH, [now, list(causes), said, list(OPEN_STATES)])
        ended = cursor.rowcount
    if ended != len(causes):
        raise NotOpenError(state=RequestState.VOIDED)


_VOID_EACH = """
UPDATE approvals_request q SET state = 'voided', closed_at = %s, cause = c.cause::jsonb
FROM unnest(%s::uuid[], %s::text[]) AS c(id, cause) WHERE q.id = c.id AND q.state = ANY(%s)
"""


def expire(*, request: Request, now: datetime) -> Request:
    """End an open request whose time is over. Raises NotOpenError where it ended before or is not due."""
    request = locked(request)
    if not request.is_open or now < request.expires_at:
        raise NotOpenError(state=RequestState(request.state))
    return _move(request, RequestState.EXPIRED, now)


def consume(*, request: Request, now: datetime) -> Request:
    """Use a valid approval up: it allows nothing more. Raises ExpiredError, NotOpenError where not valid."""
    request = locked(request)
    if request.state != RequestState.VALID:
        raise NotOpenError(state=RequestState(request.state))
    if now >= request.expires_at:
        raise ExpiredError(at=request.expires_at)
    return _move(request, RequestState.CONSUMED, now)


def locked(request: Request) -> Request:
    """The request as it is now, its row locked until the transaction ends."""
    return Request.objects.select_for_update().get(pk=request.pk, tenant_id=request.tenant_id)


def _move(request: Request, state: RequestState, now: datetime, changes: Sequence[Change] = ()) -> Request:
    request.state = state
    request.closed_at = None if state in OPEN_STATES else now
    request.cause = cause_of(changes) if changes else None
    request.save(update_fields=["state", "closed_at", "cause"])
    return request


def _refuse_lapsed(request: Request, now: datetime) -> None:
    """Raise where somebody approved before and may not any more: nothing is added to what does not count."""
    if lapsed := standing(request_id=request.pk, now=now).lapsed:
        raise StaleError(
            changes=tuple(
                Change(what=f"approvers.{x.person.shown_name}", before="", after=x.why, who=str(x.person.pk))
                for x in lapsed
            )
        )


def _state_after(request: Request, verdict: Verdict, approved: Sequence[UUID]) -> RequestState:
    """Where the decision leads; `approved` are all who approved, this person included."""
    match verdict:
        case Verdict.APPROVE:
            enough = len(approved) >= request.needed and not unmet(request, approved)
            return RequestState.VALID if enough else RequestState.PENDING
        case Verdict.REJECT:
            return RequestState.REJECTED
        case Verdict.ASK:
            return RequestState.CHANGES_ASKED
        case Verdict.TAKE_BACK:
            raise ValueError("verdict: an approval is taken back by take_back()")
