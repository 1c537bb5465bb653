"""The installation's own system checks."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from console import checks


def found(messages: list[Any]) -> list[str]:
    return [message.id for message in messages]


def test_the_shipped_settings_pass(db: None) -> None:
    assert checks.object_permissions(None) == []
    assert checks.agents(None) == []
    assert checks.real_broker(None) == []
    assert checks.database(None, databases=["default"]) == []


def test_without_guardian_nobody_would_have_a_right(settings: Settings) -> None:
    settings.AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
    assert found(checks.object_permissions(None)) == ["console.E001"]


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("no.such.module:AGENT", "console.E002"),
        ("runs.durations:NO_SUCH", "console.E002"),
        ("runs.durations:PROFILES", "console.E003"),
    ],
)
def test_what_is_no_agent_is_named(settings: Settings, path: str, fault: str) -> None:
    settings.HANDOFF_AGENTS = [path]
    assert found(checks.agents(None)) == [fault]


@pytest.mark.parametrize("change", [{"CELERY_TASK_ALWAYS_EAGER": True}, {"CELERY_BROKER_URL": "memory://"}])
def test_a_broker_that_forgets_is_refused(settings: Settings, change: dict[str, object]) -> None:
    for name, value in change.items():
        setattr(settings, name, value)
    assert found(checks.real_broker(None)) == ["console.E004"]


def test_a_moved_clock_is_refused_outside_test_databases(db: None) -> None:
    """Asked in the embedded server's own database, whose name is none of a test's."""
    other = connection.copy()
    other.settings_dict = {**connection.settings_dict, "NAME": "postgres"}
    with other.cursor() as cursor:
        cursor.execute("set handoff.clock_offset = '1 hour'")
        assert [fault.id for fault in checks.clock_faults(cursor)] == ["console.E006"]
    other.close()
