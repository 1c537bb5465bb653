"""What loses its ground when a person belongs to an organisation no more."""

from __future__ import annotations

from typing import Any

from accounts.models import Tenant, User
from approvals.models import OPEN_STATES, Decision, Verdict
from runs.models import CLOSED, Run


def of(person: User, tenant: Tenant) -> dict[str, Any]:
    """How many open runs act on this person's behalf, and how many open or valid approvals count this person's."""
    runs = Run.objects.filter(tenant=tenant, principal=person).exclude(state__in=CLOSED)
    approvals = Decision.objects.filter(
        person=person, verdict=Verdict.APPROVE, request__tenant=tenant,
        request__state__in=OPEN_STATES,
    )  # fmt: skip
    subjects = approvals.order_by("request__subject").values_list("request__subject", flat=True)[:10]
    return {
        "runs": runs.count(),
        "approvals": approvals.count(),
        "run_ids": list(runs.order_by("pk").values_list("pk", flat=True)[:10]),
        "subjects": [subject.partition(":")[0] for subject in subjects],
    }
