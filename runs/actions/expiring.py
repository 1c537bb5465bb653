"""The end of requests, and of what runs act on or people agreed, that no worker records: of runs that wait for a
person, or whose version nobody serves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import uuid4

from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q

from approvals.queries import overdue
from approvals.standing import standing
from runs import grants, planning
from runs.actions.frame import SWEEP, locked_by_system
from runs.actions.plans import code_of
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


_LAPSED = """
SELECT DISTINCT r.id FROM approvals_request q JOIN runs_run r ON r.id = split_part(q.subject, ':', 1)
JOIN approvals_decision d ON d.request_id = q.id AND d.verdict = 'approve' AND d.needed
WHERE q.state = 'pending' AND r.state = 'waiting_approval' AND (r.lease_until IS NULL OR r.lease_until <= handoff_now())
    AND (handoff_approvers_standing(q.tenant_id, ARRAY[d.person_id], q.codename, q.object_type_id, q.object_pk) = 0
      OR q.not_by ? 'other_tenant' AND handoff_of_this_tenant_alone(q.tenant_id, ARRAY[d.person_id]) = '{}')
ORDER BY r.id LIMIT %s
"""


def lapsed_runs(at_most: int) -> list[str]:
    """The runs with a pending request that somebody approved who may not any more, and which nobody holds."""
    with connection.cursor() as cursor:
        cursor.execute(_LAPSED, [at_most])
        return [row[0] for row in cursor.fetchall()]


def void_lapsed(run_id: str) -> None:
    """Void such a request, and ask anew where the code at hand can say what for; else whoever may decide asks.

    Nothing where that was done, or a worker took the run meanwhile. Raises ledger.LogUnreadable.
    """
    agent = code_of(Run.objects.select_related("agent").get(pk=run_id))

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        if state.request is None or state.plan is None:
            return ()
        found = standing(request_id=state.request.id, now=now).lapsed
        again: decide.Events = ()
        if agent is not None:
            asks = planning.requirement(state, agent, state.plan.plan)
            again = decide.ask_anew(state, requirement=asks, request=str(uuid4()), now=now)
        return decide.lapsed(state, [(x.person.shown_name, x.why) for x in found], again)

    _record(run_id, events_of)


def _record(run_id: str, events_of: Callable[[s.RunState, datetime], Sequence[e.Event]]) -> None:
    with transaction.atomic():
        run, now = locked_by_system(run_id)
        if run.lease_until is not None and run.lease_until > now:
            return
        state = load(run_id)
        if events := events_of(state, now):
            write(state, events, run=run, actor=SWEEP, now=now)
