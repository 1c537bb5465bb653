"""What the inbox says of a run that waits for approval, before and after its request's time."""

from __future__ import annotations

from datetime import timedelta

from tests.fixtures.clock import Clock
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.pages.test_inbox import rows, run_ids
from tests.people import House, advance


def test_it_is_the_request_that_expires(house: House, sign_in: SignIn) -> None:
    house.waiting()

    (row,) = rows(sign_in(house.approver))

    assert "The request for approval of plan v1 expires at" in row.text


def test_an_expired_request_is_to_be_asked_for_again(house: House, sign_in: SignIn, clock: Clock) -> None:
    run, operator, approver = house.waiting(), sign_in(house.operator), sign_in(house.approver)
    renew = f"/runs/{run.pk}/renew/"
    clock.move(timedelta(minutes=1))

    assert "Ask for approval again" in read(operator.get(renew)).one("main").text
    before = rows(operator)
    advance(run)
    after = rows(operator)

    for (row,) in (before, after):
        assert "Request expired at" in row.text and "needs to be asked for again" in row.text
        assert renew in [link.attrs["href"] for link in row.all("a")]
    assert run_ids(operator, "?view=all&mine=1") == [run.pk]
    assert run_ids(approver, "?view=all&mine=1") == []
    assert "Ask for approval again" in read(operator.get(renew)).one("main").text
