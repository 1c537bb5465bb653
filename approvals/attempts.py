"""The record of what was tried and refused."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.db import transaction

from accounts.models import User
from approvals.models import Attempt


def record_refused(
    *,
    tenant_id: UUID | None,
    person: User | None,
    action: str,
    subject: str,
    seen: str,
    refusal: str,
    detail: Mapping[str, object],
    reason: str,
    at: datetime,
    ip: str | None,
    request_id: str,
) -> Attempt:
    """Keep a refused attempt: what was tried on which subject, on which version seen, why it was refused.

    Call it once the refused action's transaction has ended: this takes its own, and raises RuntimeError
    inside another, in whose rollback the record would be lost. Texts from outside are cut and cleaned rather
    than refused.
    """
    with transaction.atomic(durable=True):
        return Attempt.objects.create(
            tenant_id=tenant_id,
            person=person,
            action=_kept(action, 60),
            subject=_kept(subject, 200),
            seen=_kept(seen, 200),
            refusal=_kept(refusal, 60),
            detail={_kept(name, 200): _kept(str(value), 2000) for name, value in detail.items()},
            reason=_kept(reason, 10_000),
            at=at,
            ip=ip,
            request_id=_kept(request_id, 64),
        )


def _kept(text: str, longest: int) -> str:
    """The text as PostgreSQL takes it: without NUL, and no longer than its column."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")[:longest]
