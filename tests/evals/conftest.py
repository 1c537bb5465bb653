"""The bench's agent, on a database of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from runs import agents


@pytest.fixture
def steady(live_db: object, settings: Settings) -> Iterator[None]:
    """The agent whose steps do nothing is registered."""
    settings.HANDOFF_AGENTS = ["evals.agent:STEADY", "evals.revalidation:CAREFUL"]
    agents.registered.cache_clear()
    yield
    agents.registered.cache_clear()
