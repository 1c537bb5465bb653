"""The page about health: a number is what its list holds, counts only what one may see, and is never 0 for unknown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db import OperationalError, connection
from django.test import Client
from pytest_django import Settings

from accounts import organisations
from approvals.models import Verdict
from runs import actions, recovery
from runs.clock import database_now
from runs.models import ConfigurationKept, Run, Sweep, Told, Worker
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, read
from tests.pages.test_inbox import rows
from tests.pages.test_queries import queries
from tests.pages.test_run import stuck
from tests.people import House, advance
from tests.runs.test_withdrawal import add, revoke, revoker

__all__ = ["revoker"]

PANELS = ("work", "doubts", "approvals", "ended", "reasons", "obligations", "constraints", "states")


def page_of(client: Client) -> Node:
    page = read(client.get("/health/"))
    assert not page.all(data_testid="unavailable")
    return page


def line(page: Node, panel: str, words: str) -> Node:
    (found,) = [
        row for row in page.part(f"health-{panel}").one("tbody").all("tr") if words in row.one("th").text
    ]
    return found


def number(page: Node, panel: str, words: str) -> str:
    return line(page, panel, words).all("td")[0].text


def needs_attention(page: Node, panel: str, words: str) -> bool:
    return "Needs attention" in line(page, panel, words).one("th").text


def test_the_numbers_are_what_the_lists_hold(
    house: House, world: World, sign_in: SignIn, clock: Clock
) -> None:
    asking = stuck(house, world)
    waiting = [house.waiting("3"), house.waiting("4")]
    rejected = house.waiting("5")
    house.decide(rejected, house.approver, Verdict.REJECT, "not this supplier")
    done = house.start("6")
    world.outage = ""
    advance(done)
    client = sign_in(house.viewer)

    page = page_of(client)

    linked = [a.attrs["href"] for a in page.one("main").all("a") if a.attrs["href"].startswith("/inbox/")]
    counted = {href: a.text for a in page.one("main").all("a") if (href := a.attrs["href"]) in linked}
    assert len(linked) == 6
    assert {href: str(len(rows(client, href.removeprefix("/inbox/")))) for href in linked} == counted
    assert number(page, "doubts", "Unknown outcome") == "1"
    assert number(page, "doubts", "last 15 min") == "1"
    assert asking.pk in line(page, "doubts", "Unknown outcome").text
    assert waiting[0].pk in line(page, "approvals", "Runs that wait for a decision").text
    assert number(page, "reasons", "Plan … was rejected") == "1"
    assert number(page, "ended", "Rejected") == "1" and number(page, "ended", "without an answer") == "0"
    clock.move(timedelta(hours=2))
    later = page_of(client)
    assert number(later, "doubts", "between 1 h and 24 h") == "1"
    assert number(later, "approvals", "ended and that is not recorded") == "2"
    assert needs_attention(later, "approvals", "ended and that is not recorded")
    recovery.sweep()
    assert number(page_of(client), "ended", "without an answer") == "2"


def test_an_effect_that_nobody_asks_about_in_time_stands_out(
    house: House, world: World, sign_in: SignIn, clock: Clock
) -> None:
    run, client = stuck(house, world), sign_in(house.viewer)
    assert number(page_of(client), "doubts", "was not asked since") == "0"

    clock.move(timedelta(minutes=10))

    page = page_of(client)
    assert number(page, "doubts", "was not asked since") == "1"
    assert needs_attention(page, "doubts", "was not asked since")
    assert number(page, "work", "Due, and no worker has taken it yet") == "1"
    assert needs_attention(page, "work", "Due, and no worker has taken it yet")
    advance(run)
    assert number(page_of(client), "doubts", "was not asked since") == "0"


def test_what_is_owed_and_what_runs_are_not_told_of_is_counted(
    house: House, revoker: Any, sign_in: SignIn, clock: Clock
) -> None:
    held = add(house, revoker)
    run = house.waiting("3")
    actions.open_obligation(
        person=house.operator, run_id=run.pk, text="tell the auditor", to="", owner=house.operator,
        submission=uuid4(), due_at=database_now() + timedelta(hours=1),
    )  # fmt: skip
    revoke(revoker, held)
    client = sign_in(house.viewer)

    page = page_of(client)
    assert number(page, "obligations", "Open") == "1" and number(page, "obligations", "overdue") == "0"
    told = line(page, "constraints", "“hours” was withdrawn")
    assert told.all("td")[0].text == "1 run is still to be told"
    assert client.get(told.one("a").attrs["href"]).status_code == 200
    actions.mark_constraints(10)
    actions.mark_constraints(10)
    assert Told.objects.exists()
    clock.move(timedelta(hours=2))
    later = page_of(client)
    assert number(later, "obligations", "overdue") == "1" and needs_attention(later, "obligations", "overdue")
    assert "Every run knows of every change." in later.part("health-constraints").text


def test_the_sweep_and_the_workers_are_told_apart(house: House, sign_in: SignIn, clock: Clock) -> None:
    client = sign_in(house.viewer)
    assert "There was no sweep yet." in page_of(client).part("health-fleet").text
    recovery.sweep()
    recovery.announce("worker@here")
    Worker.objects.create(
        name="other@here", serves=["handoff", "agent.elsewhere.1"], started_at=database_now(),
        last_seen_at=database_now(),
    )  # fmt: skip

    fleet = page_of(client).part("health-fleet")
    assert "Needs attention" not in fleet.text and "worker@here payer 1" in fleet.text.replace(".", " ")
    assert "silent" not in fleet.text and "elsewhere" not in fleet.text
    organisations.make_organiser(person=house.viewer, actor=None, now=database_now())
    assert "elsewhere.1" in page_of(client).part("health-fleet").text
    clock.move(timedelta(hours=1))
    late = page_of(client).part("health-fleet").text
    assert "Needs attention" in late and "silent" in late
    Sweep.objects.all().delete()


def test_a_run_whose_version_nobody_serves_and_one_that_was_left_are_counted(
    house: House, sign_in: SignIn
) -> None:
    now = database_now()
    house.start("3")
    left = house.start("4")
    Run.objects.filter(pk=left.pk).update(lease_until=now - timedelta(hours=1), lease_holder="dead@here")
    held = house.start("5")
    Run.objects.filter(pk=held.pk).update(lease_until=now + timedelta(hours=1), lease_holder="here@here")
    client = sign_in(house.viewer)

    page = page_of(client)

    assert number(page, "work", "Due, and no") == "2" and number(page, "work", "no live worker") == "2"
    assert needs_attention(page, "work", "no live worker")
    assert number(page, "work", "Held by") == "1"
    assert number(page, "work", "Left by") == "1" and left.pk in line(page, "work", "Left by").text
    recovery.announce("worker@here")
    assert number(page_of(client), "work", "no live worker") == "0"


def test_a_document_that_cannot_be_heard_stands_out(
    house: House, sign_in: SignIn, settings: Settings
) -> None:
    settings.HANDOFF_CONFIGURATION = "https://orchestrator.example/limits.json"
    client, now = sign_in(house.viewer), database_now()
    assert number(page_of(client), "documents", "Documents that constraints come from") == "1"
    ConfigurationKept.objects.create(
        ref=settings.HANDOFF_CONFIGURATION, etag="", version="3", document="{}", digest="sha256:00", tried_at=now,
        asked_at=now - timedelta(hours=2), good_until=now - timedelta(hours=1), failure="no route to it",
    )  # fmt: skip

    page = page_of(client)

    for words in ("gave no answer", "counts no more"):
        assert number(page, "documents", words) == f"1 {settings.HANDOFF_CONFIGURATION}"
        assert needs_attention(page, "documents", words)


def test_nothing_of_other_organisations_is_counted(house: House, world: World, sign_in: SignIn) -> None:
    stuck(house, world)
    house.waiting("3")

    page = page_of(sign_in(house.stranger))

    assert "There is no run that you may see." in page.part("health-states").text
    for panel in PANELS:
        assert not page.part(f"health-{panel}").all("table"), panel


def test_what_could_not_be_counted_is_unavailable_and_never_none(
    house: House, world: World, sign_in: SignIn
) -> None:
    stuck(house, world)
    house.waiting("3")
    client = sign_in(house.viewer)

    def refuse(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "array_agg" in sql.lower():
            raise OperationalError("no such luck")
        return execute(sql, params, many, context)

    assert not connection.in_atomic_block
    with connection.execute_wrapper(refuse):
        page = read(client.get("/health/"))

    for panel in ("work", "approvals", "obligations"):
        part = page.part(f"health-{panel}")
        assert part.part("unavailable").text.startswith("Unavailable") and not part.all("table")
    assert number(page, "doubts", "Unknown outcome") == "1"


def test_the_page_asks_as_much_of_many_runs(
    house: House, world: World, sign_in: SignIn, clock: Clock
) -> None:
    client = sign_in(house.viewer)
    stuck(house, world)
    clock.move(timedelta(minutes=10))  # so that queries about the effect are looked for from here on
    few = queries(client, "/health/")
    for order in range(5):
        house.waiting(str(3000 + order))
    world.answers = ["lost"]
    advance(house.start("2"))

    assert queries(client, "/health/") == few
    assert few <= 24
