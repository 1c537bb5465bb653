"""The inbox: who sees which runs, in which order, and that its counts are its rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db import OperationalError, connection
from django.test import Client

from accounts.rights import Right, withdraw_right
from approvals.models import Verdict
from runs import actions
from runs.clock import database_now
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, read
from tests.pages.test_run import stuck
from tests.people import House, advance

TABS = ("all", "unknown", "needs_human", "waiting_approval", "closed")


def rows(client: Client, query: str = "?view=all") -> list[Node]:
    return read(client.get(f"/inbox/{query}")).all("tr", data_testid="row")


def run_ids(client: Client, query: str = "?view=all") -> list[str]:
    return [row.attrs["data-run"] for row in rows(client, query)]


def test_what_only_a_person_can_settle_stands_first(
    house: House, world: World, sign_in: SignIn, clock: Clock
) -> None:
    rejected = house.waiting("1")
    house.decide(rejected, house.approver, Verdict.REJECT, "not this supplier")
    asking, stopped = stuck(house, world), _given_up(house, world, clock)
    waiting = house.waiting("3")

    found = rows(sign_in(house.viewer))

    assert [row.attrs["data-run"] for row in found] == [stopped, asking.pk, waiting.pk, rejected.pk]
    assert [row.attrs["data-risk"] for row in found] == ["critical", "critical", "critical", "medium"]
    assert all(row.all("td")[1].text for row in found)
    assert "1 effect has no receipt (1 cannot be undone): pay 50.00 EUR for order 9" in found[0].text
    assert "not this supplier" in found[3].text


def _given_up(house: House, world: World, clock: Clock) -> str:
    """A run whose worker has asked until its patience ended."""
    world.answers = ["lost"]
    run = house.start("9")
    advance(run)
    clock.move(timedelta(minutes=30))
    state = advance(run)
    assert [reason.code for reason in state.reasons] == ["effect_unknown"]
    return run.pk


def test_a_tab_counts_the_rows_it_lists(house: House, world: World, sign_in: SignIn) -> None:
    house.decide(house.waiting("1"), house.approver, Verdict.REJECT, "not this supplier")
    stuck(house, world)
    house.waiting("3")
    world.outage = ""
    advance(house.start("4"))
    client = sign_in(house.viewer)

    tabs = {
        tab.attrs["data-tab"]: tab
        for tab in read(client.get("/inbox/?view=all")).all("a")
        if "data-tab" in tab.attrs
    }

    assert set(tabs) == set(TABS)
    shown = {key: tab.one("span", id=f"count-{key}").text for key, tab in tabs.items()}
    assert shown == {key: str(len(rows(client, f"?view={key}"))) for key in TABS}
    assert shown == {"all": "3", "unknown": "1", "needs_human": "1", "waiting_approval": "1", "closed": "1"}


def test_only_what_one_can_act_on(house: House, world: World, sign_in: SignIn) -> None:
    waiting, doubtful = house.waiting("3"), stuck(house, world)
    own = "?view=all&mine=1"

    assert run_ids(sign_in(house.approver), own) == [waiting.pk]
    assert run_ids(sign_in(house.operator), own) == [doubtful.pk]
    assert run_ids(sign_in(house.operator), "") == [doubtful.pk]
    assert run_ids(sign_in(house.viewer), own) == []
    assert len(run_ids(sign_in(house.viewer), "")) == 2


def test_a_watcher_is_told_why_there_is_no_link(house: House, sign_in: SignIn) -> None:
    run = house.waiting()

    (row,) = rows(sign_in(house.viewer))
    (linked,) = rows(sign_in(house.approver))

    assert "Watching only: Viewer does not have the right “Approve plans” here." in row.text
    assert [link.attrs["href"] for link in row.all("a")] == [f"/runs/{run.pk}/"]
    assert f"/runs/{run.pk}/plan/1/review/" in [link.attrs["href"] for link in linked.all("a")]


def test_a_stranger_sees_none_of_it(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    client = sign_in(house.stranger)

    for query in ("?view=all", "?view=any", f"?view=any&q={run.pk}"):
        assert run_ids(client, query) == []


def test_one_without_rights_is_told_so(house: House, sign_in: SignIn) -> None:
    house.waiting()
    withdraw_right(to=house.viewer, right=Right.VIEW_RUNS, obj=house.agent, actor=None, now=database_now())

    page = read(sign_in(house.viewer).get("/inbox/"))

    assert "because you have no right on any agent" in page.one("main").text


def test_filtering_and_paging_are_in_the_address(house: House, sign_in: SignIn) -> None:
    for number in range(52):
        house.start(str(number))
    client = sign_in(house.viewer)

    first, second = run_ids(client, "?view=any"), run_ids(client, "?view=any&page=2")

    assert (len(first), len(second), len({*first, *second})) == (50, 2, 52)
    assert run_ids(client, f"?view=any&q={first[7]}") == [first[7]]
    assert len(run_ids(client, "?view=any&q=order+51")) == 1
    assert (
        "No run matches these filters. 52 match without them."
        in read(client.get("/inbox/?view=any&q=zzz")).text
    )


def test_a_cancelled_run_stays_until_what_it_owes_is_done(
    house: House, world: World, sign_in: SignIn
) -> None:
    world.answers = ["", "refused"]
    run = house.start("7")
    advance(run)
    actions.cancel_run(person=house.operator, run_id=run.pk, note="enough of this", submission=uuid4())
    advance(run)

    (row,) = rows(sign_in(house.viewer))

    assert row.attrs["data-run"] == run.pk
    assert (
        "Obligation open: the run is over and still owes: tell the supplier of 7, owner Operator." in row.text
    )


def test_the_poll_says_what_changed_and_else_nothing(house: House, sign_in: SignIn) -> None:
    client = sign_in(house.viewer)
    address = read(client.get("/inbox/")).one(id="notices").attrs["hx-get"]

    first = client.get(address)
    again = client.get(address, headers={"If-None-Match": first["ETag"]})
    house.waiting()
    after = client.get(address, headers={"If-None-Match": first["ETag"]})

    assert (first.status_code, again.status_code, after.status_code) == (200, 304, 200)
    assert "1 run changed since you loaded this list." in read(after).text
    assert not [x for x in read(after).all() if x.tag in ("input", "select", "textarea", "button", "details")]


def test_a_count_that_fails_is_a_dash_and_a_list_that_fails_says_so(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.viewer)

    with connection.execute_wrapper(_failing("FILTER")):
        counted = read(client.get("/inbox/?view=all"))
    with connection.execute_wrapper(_failing("ORDER BY", "LIMIT 50")):
        listed = read(client.get("/inbox/?view=all"))

    assert counted.one("span", id="count-all").text == "– count unavailable"
    assert run.pk in counted.text
    assert "The list could not be loaded at" in listed.text and "It is not empty." in listed.text
    assert "Nothing needs a person." not in listed.text


def _failing(*words: str) -> Any:
    """Fails the statements that hold all these words."""

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if all(word in sql for word in words):
            raise OperationalError("no such luck")
        return execute(sql, params, many, context)

    return wrapper
