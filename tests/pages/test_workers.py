"""The run page says so where no worker is there to go on with the run."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.test import Client

from runs.agents import queue_name
from runs.clock import database_now
from runs.models import Run, Worker
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import House

IDLE = "Nothing to do: a worker goes on with the run."


def next_action(client: Client, run: Run) -> str:
    return read(client.get(f"/runs/{run.pk}/")).part("next-safe-action").text


def seen(run: Run, ago: timedelta) -> str:
    """A worker of the run's version was last heard of that long ago."""
    at = database_now() - ago
    queues = [queue_name(run.agent.name, run.agent_version)]
    values = {"serves": queues, "started_at": at, "last_seen_at": at}
    Worker.objects.update_or_create(name="w1", defaults=values)
    return f"{at:%H:%M:%S}"


def test_a_run_that_no_worker_serves_says_since_when(house: House, sign_in: SignIn) -> None:
    run, client = house.start(), sign_in(house.viewer)

    never = next_action(client, run)
    at = seen(run, 2 * settings.HANDOFF_DURATIONS.worker_silent)
    gone = next_action(client, run)
    seen(run, timedelta())
    there = next_action(client, run)

    assert "No worker serves this version now, and none was ever seen." in never
    assert f"No worker serves this version now (last seen {at}" in gone and "until one does." in gone
    assert IDLE not in never and IDLE not in gone
    assert IDLE in there and "No worker" not in there


def test_what_waits_for_a_person_does_not_ask_for_a_worker(house: House, sign_in: SignIn) -> None:
    assert "No worker" not in next_action(sign_in(house.viewer), house.waiting())
