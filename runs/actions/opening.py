"""Over-long values of a plan: who has looked at which of them whole, and that an approver has looked at all."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from accounts.models import User
from approvals.models import OpenedValue
from approvals.outcomes import ValuesUnopenedError
from runs.machine import state as s
from runs.machine.leaves import to_open
from runs.models import Run


def record_opened(*, person: User, tenant_id: UUID, digest: str, number: int, now: datetime) -> None:
    """The person was shown the whole of a value of the plan with this digest; the first time is kept.

    It decides nothing, and is no event of the run: it says what a person has read. The caller has loaded the run for
    the person.
    """
    seen = OpenedValue(tenant_id=tenant_id, person=person, digest=digest, number=number, at=now)
    OpenedValue.objects.bulk_create([seen], ignore_conflicts=True)


def opened_by(person: User, *, tenant_id: UUID, digest: str) -> frozenset[int]:
    """The numbers of the values that the person has been shown whole."""
    seen = OpenedValue.objects.filter(tenant_id=tenant_id, digest=digest, person=person)
    return frozenset(seen.values_list("number", flat=True))


def refuse_unopened(run: Run, state: s.RunState, person: User) -> None:
    """Raise ValuesUnopenedError where the plan that waits has over-long values that the person has not opened."""
    plan = state.plan
    if plan is None or not (long := to_open(state, plan)):
        return
    seen = opened_by(person, tenant_id=run.tenant_id, digest=plan.digest)
    if left := tuple(f"{value.step} {value.path}" for value in long if value.number not in seen):
        raise ValuesUnopenedError(names=left)
