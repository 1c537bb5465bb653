"""The end of requests, and of what runs act on, that no worker records: of runs that wait for a person, or whose
version nobody serves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from approvals.queries import overdue
from runs import grants
from runs.actions.frame import SWEEP, locked_by_system
from runs.actions.writing import write
from runs.clock import database_now
from runs.ledger import load
from runs.machine import decide, expiry
from runs.machine import events as e
from runs.machine import state as s
from runs.models import Run

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
    _record(run_id, expiry.recorded)


def unlent_runs(at_most: int) -> list[str]:
    """The runs that ask for approval although the grant that they act on is over, and which nobody holds."""
    now = database_now()
    open_ = Session.objects.filter(session_key=OuterRef("grant__session_key"), expire_date__gt=now)
    over = Q(grant__ended_at__isnull=False) | Q(grant__expires_at__lte=now)
    over |= ~Q(grant__session_key="") & Q(~Exists(open_))
    asking = Run.objects.filter(state=s.State.WAITING_APPROVAL.value, grant__isnull=False)
    found = asking.filter(over).exclude(lease_until__gt=now)
    return list(found.order_by("pk").values_list("pk", flat=True)[:at_most])


def stop_unlent(run_id: str) -> None:
    """Stop such a run for a person who lends anew; nothing where that was done, or a worker took the run meanwhile.

    Raises ledger.LogUnreadable.
    """
    _record(run_id, lambda state, now: decide.authority_over(state, grants.still_lent(state)[0]))


def _record(run_id: str, events_of: Callable[[s.RunState, datetime], Sequence[e.Event]]) -> None:
    with transaction.atomic():
        run, now = locked_by_system(run_id)
        if run.lease_until is not None and run.lease_until > now:
            return
        state = load(run_id)
        if events := events_of(state, now):
            write(state, events, run=run, actor=SWEEP, now=now)
