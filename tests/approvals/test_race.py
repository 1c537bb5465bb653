"""Many people at once."""

from __future__ import annotations

import threading
from collections import Counter
from uuid import uuid4

import pytest
from django.db import connections, transaction

from accounts.fence import fence_shared
from accounts.models import User
from approvals.models import Decision, Request, Verdict
from approvals.outcomes import AlreadyRecorded, ConflictError, NotNeeded, Recorded
from tests.approvals.world import APPROVE, REJECT, Desk, choose

pytestmark = pytest.mark.usefixtures("live_db")


class Crowd:
    """Threads that decide about one request at the same moment, and what each was told."""

    def __init__(self, request: Request, size: int) -> None:
        self.request, self.barrier = request, threading.Barrier(size)
        self.told: list[tuple[Verdict, type]] = []
        self.threads: list[threading.Thread] = []

    def add(self, person: User, verdict: Verdict, submission: object = None) -> None:
        self.threads.append(threading.Thread(target=self._decide, args=(person, verdict, submission)))

    def run(self) -> Counter[tuple[Verdict, type]]:
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join(60)
        return Counter(self.told)

    def _decide(self, person: User, verdict: Verdict, submission: object) -> None:
        self.barrier.wait(30)
        try:
            with transaction.atomic():
                fence_shared(self.request.tenant_id)
                told: type = type(choose(self.request, person, verdict, submission=submission or uuid4()))  # type: ignore[arg-type]
        except ConflictError:
            told = ConflictError
        finally:
            connections.close_all()
        self.told.append((verdict, told))


def test_twenty_people_ten_each_way_make_one_outcome() -> None:
    desk = Desk()
    request, crowd = desk.request(), None
    crowd = Crowd(request, 20)
    for _ in range(10):
        crowd.add(desk.approver(), APPROVE)
        crowd.add(desk.approver(), REJECT)
    told = crowd.run()
    state = Request.objects.get(pk=request.pk).state
    won, lost = (APPROVE, REJECT) if state == "valid" else (REJECT, APPROVE)
    assert state in ("valid", "rejected")
    assert told == {(won, Recorded): 1, (won, NotNeeded): 9, (lost, ConflictError): 10}
    assert Decision.objects.filter(request=request, needed=True).count() == 1


def test_one_form_sent_ten_times_at_once_is_one_decision() -> None:
    desk = Desk()
    request, mia, submission = desk.request(), desk.approver(), uuid4()
    crowd = Crowd(request, 10)
    for _ in range(10):
        crowd.add(mia, APPROVE, submission)
    assert crowd.run() == {(APPROVE, Recorded): 1, (APPROVE, AlreadyRecorded): 9}
    assert Decision.objects.filter(request=request).count() == 1


def test_of_a_quorum_of_three_exactly_three_count() -> None:
    desk = Desk()
    request = desk.request(needed=3)
    crowd = Crowd(request, 8)
    for _ in range(8):
        crowd.add(desk.approver(), APPROVE)
    assert crowd.run() == {(APPROVE, Recorded): 3, (APPROVE, NotNeeded): 5}
    counted = Decision.objects.filter(request=request, needed=True).order_by("approvals_after")
    assert [d.approvals_after for d in counted] == [1, 2, 3]
