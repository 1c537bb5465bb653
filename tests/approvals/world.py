"""A request to decide about, in a world of people who may and may not."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from accounts.models import User
from accounts.rights import Right
from approvals.decisions import decide, open_request
from approvals.models import Request, Verdict
from approvals.outcomes import Outcome
from tests.accounts.world import NOW, World

CONDITIONS = '{"plan_version":"3","policy":"v1","resources":{"order-7":"W/1"}}'
APPROVE, REJECT, ASK = Verdict.APPROVE, Verdict.REJECT, Verdict.ASK
STANDS = timedelta(hours=1)


@dataclass
class Desk:
    """Where one request lies, and people sit who may decide about it."""

    world: World = field(default_factory=World)

    def request(self, *, needed: int = 1, excluded: dict[UUID, str] | None = None, **other: Any) -> Request:
        asked: dict[str, Any] = {
            "id": uuid4(),
            "tenant_id": self.world.tenant.pk,
            "subject": f"run_{uuid4().hex[:8]}:3",
            "digest": "v1:aaaa",
            "conditions": CONDITIONS,
            "conditions_digest": "v1:cccc",
            "policy_version": "v1",
            "right": Right.APPROVE_PLANS,
            "on": self.world.agent,
            "now": NOW,
            "expires_at": NOW + STANDS,
        }
        return open_request(needed=needed, excluded=excluded or {}, **{**asked, **other})

    def approver(self, name: str = "") -> User:
        return self.world.person(Right.APPROVE_PLANS, name=name)


def choose(
    request: Request,
    person: User,
    verdict: Verdict = APPROVE,
    *,
    submission: UUID | None = None,
    now: datetime = NOW,
    **other: str,
) -> Outcome:
    """Decide on the request as its own page would, unless `other` says what the page showed instead."""
    shown = {"digest": request.digest, "conditions_digest": request.conditions_digest, "reason": "As agreed."}
    return decide(
        request=request,
        person=person,
        verdict=verdict,
        submission=submission or uuid4(),
        now=now,
        **{**shown, **other},
    )
