"""Fixtures: a database of one's own, real workers, a real web process, a real browser."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests.fixtures.browser import browser, open_page, page
from tests.fixtures.clock import clock
from tests.fixtures.database import (
    bare,
    furnished,
    furnished_db,
    live_db,
    migrated_db,
    shared_db,
    test_servers,
)
from tests.fixtures.migrated import django_db_setup
from tests.fixtures.processes import broker, second_web, serving, web, workers

# A loaded machine is no fault of what is tested. The same examples each time: what fails, fails because of the change
# under test, and again when tried again. New ones are looked for by `make matrix`.
settings.register_profile(
    "repository", deadline=None, suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("MATRIX") != "all",
)  # fmt: skip
settings.load_profile("repository")

__all__ = [
    "bare",
    "broker",
    "browser",
    "clock",
    "django_db_setup",
    "furnished",
    "furnished_db",
    "live_db",
    "migrated_db",
    "open_page",
    "page",
    "second_web",
    "serving",
    "shared_db",
    "test_servers",
    "web",
    "workers",
]
