"""Fixtures: a database of one's own, real workers, a real web process, a real browser."""

from __future__ import annotations

from tests.fixtures.browser import browser, open_page, page
from tests.fixtures.clock import clock
from tests.fixtures.database import furnished_db, live_db, migrated_db, test_servers
from tests.fixtures.processes import broker, web, workers

__all__ = [
    "broker",
    "browser",
    "clock",
    "furnished_db",
    "live_db",
    "migrated_db",
    "open_page",
    "page",
    "test_servers",
    "web",
    "workers",
]
