"""The end of requests that no worker records: of runs that wait for a person, or whose version nobody serves."""

from __future__ import annotations

from django.db import transaction

from accounts.fence import fence_shared
from approvals.queries import overdue
from runs.actions.writing import write
from runs.clock import database_now
from runs.ledger import load
from runs.machine import events as e
from runs.machine import expiry
from runs.models import Run

SYSTEM = e.Actor(e.ActorKind.SYSTEM, "sweep", "sweep")
#: Where it can be recorded without a worker: everywhere else a worker is at the steps, and finds it itself.
STANDING = ("waiting_approval", "waiting", "needs_human", "unknown")


def overdue_runs(at_most: int) -> list[str]:
    """The runs whose request is over and not yet recorded as that, and which nobody holds."""
    now = database_now()
    subjects = overdue(now=now).values_list("subject", flat=True)[:at_most]
    ids = {subject.partition(":")[0] for subject in subjects}
    runs = Run.objects.filter(pk__in=ids, state__in=STANDING).exclude(lease_until__gt=now)
    return list(runs.values_list("pk", flat=True))


def record_expiry(run_id: str) -> None:
    """Record that the run's request is over; nothing where that was done, or a worker took the run meanwhile.

    Raises ledger.LogUnreadable.
    """
    with transaction.atomic():
        fence_shared(Run.objects.values_list("tenant_id", flat=True).get(pk=run_id))
        run = Run.objects.select_for_update(of=("self",)).select_related("agent").get(pk=run_id)
        now = database_now()
        if run.lease_until is not None and run.lease_until > now:
            return
        state = load(run_id)
        if events := expiry.recorded(state, now):
            write(state, events, run=run, actor=SYSTEM, now=now)
