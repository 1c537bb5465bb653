"""Times are written in the zone that a person set, each with its zone; what is handed on stays in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from django.utils import timezone

from accounts.models import User
from accounts.zones import written, zone_of
from runs.ledger import load
from runs.models import Run
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import House, advance


def living_in(person: User, zone: str) -> None:
    User.objects.filter(pk=person.pk).update(zone=zone)
    person.refresh_from_db()


def test_a_time_names_its_zone_by_letters_or_by_its_distance() -> None:
    summer, winter = datetime(2026, 7, 1, 22, 30, tzinfo=UTC), datetime(2026, 12, 1, 22, 30, tzinfo=UTC)
    said = {}
    for zone in ("Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu", "Not/AZone"):
        with zone_of(User(zone=zone)):
            said[zone] = [written(at, "%d %H:%M").replace("\u00a0", " ") for at in (summer, winter)]
    assert said == {
        "Europe/Berlin": ["02 00:30 CEST", "01 23:30 CET"],
        "America/Sao_Paulo": ["01 19:30 UTC-03:00", "01 19:30 UTC-03:00"],
        "Asia/Kathmandu": ["02 04:15 UTC+05:45", "02 04:15 UTC+05:45"],
        "Not/AZone": ["01 22:30 UTC", "01 22:30 UTC"],
    }
    assert timezone.get_current_timezone() in (UTC, ZoneInfo("UTC"))


def test_pages_are_in_the_readers_zone_and_what_is_handed_on_in_utc(
    house: House, world: World, sign_in: SignIn
) -> None:
    run = house.start()
    advance(run)
    living_in(house.operator, "Asia/Kathmandu")
    client, began = sign_in(house.operator), load(run.pk).identity.started_at
    here = f"{began.astimezone(ZoneInfo('Asia/Kathmandu')):%Y-%m-%d %H:%M:%S} UTC+05:45"
    page = read(client.get(f"/runs/{run.pk}/"))
    assert here in page.text and "Times are UTC+05:45." in page.text
    assert not re.search(r"\d\d:\d\d:\d\d UTC(?!\+)", page.text), "one zone on a page"
    assert page.one("body").attrs["data-zone"] == "Asia/Kathmandu"
    for address in (
        f"/runs/{run.pk}/events/",
        f"/runs/{run.pk}/handoff/",
        "/audit/",
        f"/runs/{run.pk}/handoff.json",
    ):
        assert "UTC+05:45" not in client.get(address).content.decode(), address
    living_in(house.viewer, "UTC")
    assert f"{began:%Y-%m-%d %H:%M:%S} UTC" in read(sign_in(house.viewer).get(f"/runs/{run.pk}/")).text
    assert Run.objects.get(pk=run.pk).at.tzinfo is UTC


def test_the_zone_is_chosen_in_the_settings(house: House, sign_in: SignIn) -> None:
    client = sign_in(house.viewer)
    form = read(client.get("/settings/")).one("main").all("form")[0]
    sent = {**form.sends(), "display_name": "Viewer", "zone": "Asia/Kathmandu"}

    page = read(client.post("/settings/", sent, follow=True))

    assert "UTC+05:45" in page.part("live-status").text
