"""What the sweep reads."""

from __future__ import annotations

from datetime import timedelta

import pytest

from approvals.queries import overdue
from tests.accounts.world import NOW
from tests.approvals.world import REJECT, STANDS, Desk, choose

pytestmark = pytest.mark.django_db


def test_overdue_are_the_open_ones_whose_time_is_over() -> None:
    desk = Desk()
    pending, valid, rejected = desk.request(), desk.request(), desk.request()
    choose(valid, desk.approver())
    choose(rejected, desk.approver(), REJECT)
    assert set(overdue(now=NOW + STANDS)) == {pending, valid}
    assert not overdue(now=NOW + STANDS - timedelta(seconds=1)).exists()
