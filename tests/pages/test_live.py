"""The poll of a run's page: notices only, and 304 while nothing changed."""

from __future__ import annotations

from approvals.models import Verdict
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import House

CONTROLS = ("input", "textarea", "select", "button", "details")


def test_it_tells_what_another_person_did(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    notices = read(client.get(f"/runs/{run.pk}/plan/1/review/")).one(id="notices").attrs["hx-get"]
    first = client.get(notices)
    house.decide(run, house.second, Verdict.REJECT, "amount above the cap")

    after = client.get(notices, headers={"If-None-Match": first["ETag"]})

    assert "Up to date with version" in read(first).text
    assert "Second rejected plan v1. “amount above the cap”" in read(after).text
    assert after.status_code == 200
    assert [x for x in read(after).all() if x.tag in CONTROLS] == []


def test_nothing_new_is_304(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    notices = read(client.get(f"/runs/{run.pk}/")).one(id="notices").attrs["hx-get"]

    first = client.get(notices)
    second = client.get(notices, headers={"If-None-Match": first["ETag"]})

    assert (first.status_code, second.status_code, second.content) == (200, 304, b"")


def test_show_changes_marks_what_is_new(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.viewer)
    run.refresh_from_db()
    house.decide(run, house.second, Verdict.REJECT, "amount above the cap")

    page = read(client.get(f"/runs/{run.pk}/?saw={run.seq}"))

    marked = [entry.text for entry in page.part("timeline").all("li") if "New:" in entry.text]
    assert len(marked) == 1 and "rejected plan v1" in marked[0]
