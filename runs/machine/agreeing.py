"""What plan versions, and people's agreement to them, do to the parts of a state. Used by `evolve`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from runs.machine import events as e
from runs.machine import evolving
from runs.machine import state as s
from runs.machine.draft import Draft, Handlers

_document = msgspec.json.Decoder(s.PlanDocument)

HANDLERS = Handlers()


@HANDLERS.on(e.PlanProposed)
def _proposed(draft: Draft, event: e.PlanProposed, recorded: e.Recorded) -> None:
    document = e.text_of(event.document)
    draft.plans += (
        s.PlanVersion(
            version=event.version, document=document, plan=_document.decode(document), digest=event.digest,
            claim=event.claim, takes=event.takes, seq=recorded.seq, at=recorded.at,
        ),
    )  # fmt: skip
    draft.done, draft.retry_at, draft.failures, draft.reads, draft.blocked = {}, None, 0, 0, None


@HANDLERS.on(e.PlanApprovedByPolicy)
def _by_policy(draft: Draft, event: e.PlanApprovedByPolicy, recorded: e.Recorded) -> None:
    draft.plans = (*draft.plans[:-1], replace(draft.plans[-1], by_policy=True))


@HANDLERS.on(e.ApprovalRequested)
def _requested(draft: Draft, event: e.ApprovalRequested, recorded: e.Recorded) -> None:
    draft.requests += (
        s.Request(
            id=event.request, version=event.version, digest=event.digest, conditions=e.text_of(event.conditions),
            conditions_digest=event.conditions_digest, needed=event.needed, right=event.right,
            policy_version=event.policy_version, expires_at=event.expires_at, status=s.RequestStatus.PENDING,
            seq=recorded.seq, at=recorded.at, excluded=event.excluded, quorums=event.quorums, unpassed=event.unpassed,
            not_by=event.not_by, announce_at=event.announce_at,
        ),
    )  # fmt: skip
    if draft.plans and draft.plans[-1].by_policy:
        # What the policy let pass needs people after all: authority was lent anew.
        draft.plans = (*draft.plans[:-1], replace(draft.plans[-1], by_policy=False))


def _decided(
    draft: Draft, event: Any, recorded: e.Recorded, verdict: str, status: s.RequestStatus | None
) -> None:
    decision = s.Decision(
        person=event.person, name=recorded.actor.name, verdict=verdict, reason=event.reason,
        submission=event.submission, seq=recorded.seq, at=recorded.at,
        overrides=getattr(event, "overrides", ()),
    )  # fmt: skip
    request = draft.requests[-1]
    _set_request(draft, recorded, status, decisions=(*request.decisions, decision))


def _set_request(draft: Draft, recorded: e.Recorded, status: s.RequestStatus | None, **parts: Any) -> None:
    """Change the latest request; a status that ends it is stamped with when."""
    if status is not None:
        parts["status"] = status
    if status is not None and status not in s.OPEN_REQUEST:
        parts |= {"closed_seq": recorded.seq, "closed_at": recorded.at}
    draft.requests = (*draft.requests[:-1], replace(draft.requests[-1], **parts))


@HANDLERS.on(e.ApprovalGiven)
def _given(draft: Draft, event: e.ApprovalGiven, recorded: e.Recorded) -> None:
    _decided(draft, event, recorded, "approve", None)


@HANDLERS.on(e.PlanApproved)
def _approved(draft: Draft, event: e.PlanApproved, recorded: e.Recorded) -> None:
    _set_request(draft, recorded, s.RequestStatus.VALID)


@HANDLERS.on(e.PlanRejected)
def _rejected(draft: Draft, event: e.PlanRejected, recorded: e.Recorded) -> None:
    _decided(draft, event, recorded, "reject", s.RequestStatus.REJECTED)
    draft.reasons = (
        *draft.reasons,
        e.Reason(code="plan_rejected", subject=f"v{event.version}", evidence=event.reason),
    )


@HANDLERS.on(e.ChangesAsked)
def _changes(draft: Draft, event: e.ChangesAsked, recorded: e.Recorded) -> None:
    _decided(draft, event, recorded, "ask", s.RequestStatus.CHANGES_ASKED)
    draft.advice += (event.reason,)
    void_plan(draft, recorded, (e.Cause(what="changes_asked", subject=f"v{event.version}", was="", now=""),))


@HANDLERS.on(e.ApprovalTakenBack)
def _taken_back(draft: Draft, event: e.ApprovalTakenBack, recorded: e.Recorded) -> None:
    _decided(draft, event, recorded, "take_back", s.RequestStatus.TAKEN_BACK)


@HANDLERS.on(e.ApprovalVoided)
def _voided(draft: Draft, event: e.ApprovalVoided, recorded: e.Recorded) -> None:
    _set_request(draft, recorded, s.RequestStatus.VOIDED, causes=event.causes)


def void_request(draft: Draft, recorded: e.Recorded, causes: tuple[e.Cause, ...]) -> None:
    if draft.requests and draft.requests[-1].status in s.OPEN_REQUEST:
        _set_request(draft, recorded, s.RequestStatus.VOIDED, causes=causes)


@HANDLERS.on(e.ExpiryAnnounced)
def _expiry_announced(draft: Draft, event: e.ExpiryAnnounced, recorded: e.Recorded) -> None:
    _set_request(draft, recorded, None, announced_seq=recorded.seq)


@HANDLERS.on(e.ApprovalExpired)
def _expired(draft: Draft, event: e.ApprovalExpired, recorded: e.Recorded) -> None:
    _set_request(draft, recorded, s.RequestStatus.EXPIRED)


@HANDLERS.on(e.PlanVoided)
def _plan_voided(draft: Draft, event: e.PlanVoided, recorded: e.Recorded) -> None:
    void_plan(draft, recorded, event.causes)
    if not evolving.of_contract(event.causes):
        draft.replans += 1


def void_plan(draft: Draft, recorded: e.Recorded, causes: tuple[e.Cause, ...]) -> None:
    """The plan version ends, and with it the request or approval that rests on it. What ended it first stays its cause
    where that was another goal or constraint.
    """
    void_request(draft, recorded, causes)
    if draft.plans and not evolving.of_contract(draft.plans[-1].voided):
        draft.plans = (*draft.plans[:-1], replace(draft.plans[-1], voided=causes, voided_seq=recorded.seq))


def consume(draft: Draft, recorded: e.Recorded) -> None:
    """An approval is used up by the run of its steps; one whose time ended on the way has expired."""
    request = draft.requests[-1] if draft.requests else None
    if request and request.status is s.RequestStatus.VALID:
        in_time = recorded.at < request.expires_at
        _set_request(draft, recorded, s.RequestStatus.CONSUMED if in_time else s.RequestStatus.EXPIRED)
