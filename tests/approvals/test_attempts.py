"""Refused attempts are kept, whatever became of the action that was refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django.db.utils import DatabaseError

from approvals.attempts import record_refused
from approvals.models import Attempt, Request
from approvals.outcomes import DecisionRefusedError
from tests.accounts.world import NOW
from tests.approvals.world import Desk, choose


def attempt(**other: Any) -> Attempt:
    kept: dict[str, Any] = {
        "tenant_id": None,
        "person": None,
        "action": "approve",
        "subject": "run_AB12:3",
        "seen": "v1:aaaa",
        "refusal": "not_allowed",
        "detail": {"why": "right_missing"},
        "reason": "Looks right.",
        "at": NOW,
        "ip": "192.0.2.7",
        "request_id": "req-1",
    }
    return record_refused(**{**kept, **other})


@pytest.mark.usefixtures("live_db")
def test_it_survives_the_rollback_of_what_was_refused() -> None:
    desk = Desk()
    request, viewer = desk.request(), desk.world.person()
    with pytest.raises(DecisionRefusedError) as refused, transaction.atomic():
        choose(request, viewer)
    attempt(
        tenant_id=desk.world.tenant.pk,
        person=viewer,
        subject=request.subject,
        refusal=refused.value.code,
        detail=refused.value.facts,
    )
    kept = Attempt.objects.get()
    assert (kept.person, kept.subject, kept.refusal) == (viewer, request.subject, "not_allowed")
    assert kept.detail == {"why": "right_missing", "right": "approve_plans"}
    assert Request.objects.get().state == "pending"


@pytest.mark.usefixtures("live_db")
def test_inside_another_transaction_it_is_refused_since_it_could_be_lost() -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        attempt()
    assert not Attempt.objects.exists()


@pytest.mark.django_db
def test_hostile_text_is_kept_cleaned_rather_than_lost() -> None:
    kept = attempt(subject="run_\x00" + "x" * 500, reason="a\x00b", detail={"n\x00": 7}, person=None)
    kept.refresh_from_db()
    assert len(kept.subject) == 200 and kept.reason == "a\N{REPLACEMENT CHARACTER}b"
    assert kept.detail == {"n\N{REPLACEMENT CHARACTER}": "7"}


@pytest.mark.django_db
def test_it_is_append_only() -> None:
    attempt()
    for spoil in (lambda: Attempt.objects.update(reason=""), lambda: Attempt.objects.all().delete()):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            spoil()
