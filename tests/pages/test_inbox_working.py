"""The inbox says who works on what, and lists one's own runs, or those of nobody."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from django.test import Client
from django.urls import reverse

from accounts.models import User
from runs import actions
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.pages.test_inbox import rows, run_ids
from tests.people import House, advance


def claim(person: User, run: Run) -> None:
    actions.claim_run(person=person, run_id=run.pk, submission=uuid4())


def mine(client: Client, url: str = "/inbox/?view=all") -> str:
    """What the nav counts beside "Mine"."""
    return read(client.get(url)).one("span", id="mine-count").text


def test_a_row_says_who_works_on_it_and_who_was_asked_to(house: House, sign_in: SignIn, clock: Clock) -> None:
    run = house.waiting("1")
    (row,) = rows(sign_in(house.viewer))
    assert "Working on it" not in row.text and "Assigned" not in row.text

    claim(house.approver, run)
    actions.assign_run(person=house.operator, run_id=run.pk, to=house.second, submission=uuid4())
    (row,) = rows(sign_in(house.viewer))
    assert row.part("working").text.startswith("Working on it: Approver, ")
    assert row.part("assigned").text == "Assigned to: Second"
    (row,) = rows(sign_in(house.approver))
    assert row.part("working").text.startswith("Working on it: you, ")

    clock.move(timedelta(minutes=15))
    (row,) = rows(sign_in(house.viewer))
    assert row.all(data_testid="working") == [] and row.all(data_testid="assigned")


def test_what_is_mine_and_what_is_nobodys_is_listed_and_counted(house: House, sign_in: SignIn) -> None:
    claimed, assigned, others, free = (house.waiting(order) for order in "1234")
    claim(house.viewer, claimed)
    claim(house.second, others)
    actions.assign_run(person=house.operator, run_id=assigned.pk, to=house.approver, submission=uuid4())
    viewer, approver = sign_in(house.viewer), sign_in(house.approver)

    assert run_ids(viewer, "?view=all&claimed=me") == [claimed.pk] and mine(viewer) == "1"
    assert run_ids(approver, "?view=all&claimed=me") == [assigned.pk] and mine(approver) == "1"
    assert run_ids(viewer, "?view=all&claimed=nobody") == [free.pk]
    assert len(run_ids(viewer, "?view=all&claimed=")) == len(run_ids(viewer, "?view=all&claimed=x")) == 4

    page = read(viewer.get("/inbox/?view=all&claimed=me"))
    (current,) = [a for a in page.all("a") if a.attrs.get("aria-current") == "page" and "class" in a.attrs]
    assert current.text == "Mine 1"
    assert page.one("span", id="count-all").text == page.one("span", id="count-waiting_approval").text == "1"
    assert page.one("span", id="count-unknown").text == "0"
    (option,) = [x for x in page.one("select", name="claimed").all("option") if "selected" in x.attrs]
    assert option.text == "me"


def test_mine_are_those_that_wait_for_a_person(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.approved("1"), sign_in(house.approver)
    claim(house.approver, run)
    assert mine(client) == "0" and run_ids(client, "?view=all&claimed=me") == []

    world.answers, world.outage = ["lost"], "the bank is closed"
    advance(run)
    assert mine(client) == "1" and run_ids(client, "?view=all&claimed=me") == [run.pk]


def test_the_poll_tells_of_claims_and_nobody_elses(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting("1"), sign_in(house.approver)
    for url in (reverse("inbox-notices"), reverse("run-notices", args=[run.pk])):
        first = client.get(url)
        assert client.get(url, headers={"If-None-Match": first["ETag"]}).status_code == 304
        claim(house.approver, run)

        answer = client.get(url, headers={"If-None-Match": first["ETag"]})

        assert read(answer).one("span", id="mine-count").text == "1"
        assert not [x for tag in ("input", "button", "select", "textarea") for x in read(answer).all(tag)]
        actions.release_run(person=house.approver, run_id=run.pk, submission=uuid4())
        assert mine(sign_in(house.stranger)) == "0"
