"""The story's people and service, and what must be so at the end of each of its tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings as configured
from pytest_django import Settings

from runs import agents
from runs.models import Run
from tests.examples.outside import Outside
from tests.people import assert_replays
from tests.story.world import Story, build


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    """The outside world in a process of its own; workers that start from now on know where it is."""
    with Outside(tmp_path / "sandbox") as running:
        monkeypatch.setenv("REFUNDS_SERVICE_URL", running.url)
        yield running


@pytest.fixture
def story(live_db: object, broker: object, service: Outside, settings: Settings) -> Iterator[Story]:
    """At the end every log equals its rows, and nothing was executed twice."""
    settings.HANDOFF_AGENTS = ["examples.refunds.agent:REFUNDS"]
    # What is approved here has to stand until a worker has started.
    settings.HANDOFF_DURATIONS = replace(configured.HANDOFF_DURATIONS, approval_stands=timedelta(minutes=5))
    agents.registered.cache_clear()
    yield build(service)
    for run in Run.objects.all():
        assert_replays(run)
    assert service.ledger()["duplicated"] == []
