"""A house of people and a world outside, for every test about runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from pytest_django import Settings

from runs import agents
from runs.models import Run
from tests.outside import WORLD, World
from tests.people import House, assert_replays, find_house
from tests.runs.invariants import assert_nothing_waits_for_nothing
from tests.runs.scripted import SCRIPT, Script


@pytest.fixture
def world(settings: Settings) -> Iterator[World]:
    """An outside world where nothing has happened, and the agent that acts on it."""
    settings.HANDOFF_AGENTS = ["tests.outside:PAYER"]
    agents.registered.cache_clear()
    WORLD.reset()
    yield WORLD
    agents.registered.cache_clear()


@pytest.fixture
def house(live_db: object, world: World) -> Iterator[House]:
    """The people, the agent, and at the end the replay check on every run."""
    yield find_house()
    connection.close_if_unusable_or_obsolete()  # a test may have ended it from outside
    assert_nothing_waits_for_nothing()
    for run in Run.objects.filter(seq__gt=0):
        assert_replays(run)


@pytest.fixture
def script(house: House, settings: Settings) -> Iterator[Script]:
    """The agent follows a script from here on."""
    settings.HANDOFF_AGENTS = ["tests.runs.scripted:AGENT"]
    agents.registered.cache_clear()
    SCRIPT.reset()
    yield SCRIPT
    SCRIPT.reset()
