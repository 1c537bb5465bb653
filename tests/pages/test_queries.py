"""How many queries a page asks is no matter of how many rows it shows."""

from __future__ import annotations

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from runs.models import Run
from tests.pages.conftest import SignIn
from tests.people import House, advance
from tests.runs.conftest import script
from tests.runs.scripted import Script, pay, plan

__all__ = ["script"]

#: What one more look at a page may cost at most; each is a trip to the database.
RUN_PAGE, INBOX = 12, 30


def queries(client: Client, url: str) -> int:
    """How many queries the page asks, once all that is read only once has been."""
    assert client.get(url).status_code == 200
    with CaptureQueriesContext(connection) as asked:
        assert client.get(url).status_code == 200
    return len(asked)


def test_a_run_page_asks_as_much_of_a_long_log(house: House, script: Script, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    short, long = _paying(house, script, range(2)), _paying(house, script, range(2, 17))
    assert (long.seq, short.seq) == (35, 9)

    first = queries(client, reverse("run", args=[short.pk]))

    assert queries(client, reverse("run", args=[long.pk])) == first
    assert first <= RUN_PAGE


def _paying(house: House, script: Script, orders: range) -> Run:
    """A run that paid each order."""
    script.proposals = [plan(*(pay(name=f"pay:{n}", order=str(n)) for n in orders))]
    run = house.start()
    advance(run)
    run.refresh_from_db()
    return run


def test_the_inbox_asks_as_much_for_many_rows(house: House, sign_in: SignIn) -> None:
    client = sign_in(house.approver)
    for order in range(2):
        house.waiting(str(3000 + order))
    few = queries(client, reverse("inbox"))
    for order in range(10):
        house.waiting(str(4000 + order))

    assert queries(client, reverse("inbox")) == few
    assert few <= INBOX
