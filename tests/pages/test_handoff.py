"""The handoff to print and share, plan versions and raw events; and runs that this build cannot read."""

from __future__ import annotations

import json

from runs.machine.events import EffectIntended
from runs.machine.handoff import KEYS
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.pages.test_review import _unguarded
from tests.pages.test_run import stuck
from tests.people import House, advance


def test_the_print_view_has_all_of_it(house: House, world: World, sign_in: SignIn) -> None:
    run = stuck(house, world)

    page = read(sign_in(house.viewer).get(f"/runs/{run.pk}/handoff/")).one("main")

    assert len(page.part("handoff").all("li")) == len(KEYS)
    for text in (
        run.pk,
        "Pay only open orders.",
        "pay:1042",
        "printed",
        "Viewer",
        f"http://testserver/runs/{run.pk}/",
    ):
        assert text in page.text
    assert not page.all("form") and not page.all("button")


def test_the_same_as_plain_text(house: House, world: World, sign_in: SignIn) -> None:
    run = stuck(house, world)

    answer = sign_in(house.viewer).get(f"/runs/{run.pk}/handoff/?format=text")

    text = answer.content.decode()
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert [line[:2] for line in text.splitlines() if line[:2] in {f"{n}." for n in range(1, 8)}] == [
        f"{n}." for n in range(1, 8)
    ]
    assert "Not safe now: Sending E-1 again: it could happen twice." in text
    assert "   amount = 50.00" in text


def test_a_plan_version_shows_what_changed(house: House, world: World, sign_in: SignIn) -> None:
    run = house.approved()
    world.versions["2000"] = "v2"
    advance(run)
    client = sign_in(house.viewer)

    second = read(client.get(f"/runs/{run.pk}/plan/2/")).one("main").text
    first = read(client.get(f"/runs/{run.pk}/plan/1/")).one("main").text

    assert "Steps, compared with v1" in second and "same" in second
    assert "No longer valid since event" in first
    assert "order:2000 changed from version v1 to version v2" in first
    assert client.get(f"/runs/{run.pk}/plan/9/").status_code == 404


def test_raw_events_page_filter_and_download(house: House, sign_in: SignIn) -> None:
    run = house.start()
    advance(run)
    client = sign_in(house.viewer)
    run.refresh_from_db()

    page = read(client.get(f"/runs/{run.pk}/events/"))
    filtered = read(client.get(f"/runs/{run.pk}/events/?type={EffectIntended.__name__}"))
    download = client.get(f"/runs/{run.pk}/events/?format=json")

    assert f"The chain of hashes is whole up to event {run.seq}." in page.text
    assert len(page.one("tbody").all("tr")) == run.seq
    assert len(filtered.one("tbody").all("tr")) == 2
    assert download["Content-Type"] == "application/json"
    events = json.loads(download.content)["events"]
    assert [event["seq"] for event in events] == list(range(1, run.seq + 1))
    assert json.loads(events[0]["body"])["goal"] == "Pay order 1042"


def test_a_log_that_cannot_be_read_is_still_shown(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    with _unguarded() as cursor:
        cursor.execute("UPDATE runs_event SET version = 99 WHERE type = 'PlanProposed'")

    page = client.get(f"/runs/{run.pk}/")
    raw = client.get(f"/runs/{run.pk}/events/")

    assert (page.status_code, raw.status_code) == (200, 200)
    shown = read(page)
    assert len(shown.part("handoff").all("li")) == len(KEYS)
    assert "No safe action is known." in shown.part("next-safe-action").text
    assert "PlanProposed version 99" in shown.part("next-safe-action").text
    assert client.get(f"/runs/{run.pk}/plan/1/review/").status_code == 409
    assert client.post(f"/runs/{run.pk}/stop/", {"reason": "long enough words"}).status_code == 409
    with _unguarded() as cursor:
        cursor.execute("UPDATE runs_event SET version = 1 WHERE type = 'PlanProposed'")
