"""What other tests stand on."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from playwright.sync_api import Page

from tests.chromium import how_to_get_chromium, without_browser
from tests.fixtures.clock import Clock
from tests.fixtures.database import LiveDatabase
from tests.fixtures.processes import Web, Workers, answers


def test_chromium_is_here() -> None:
    assert without_browser() or not how_to_get_chromium(), how_to_get_chromium()


def test_a_live_database_commits_for_other_sessions(live_db: LiveDatabase) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select current_database()")
        assert cursor.fetchone() == (live_db.name,)
    assert live_db.name.startswith("test_")


def test_the_clock_moves_for_every_session(live_db: LiveDatabase, clock: Clock) -> None:
    before = clock.now()
    clock.move(timedelta(hours=2))
    assert clock.now() - before >= timedelta(hours=2)
    with psycopg.connect(live_db.url) as other:
        row = other.execute("select handoff_now() - now()").fetchone()
    assert row == (timedelta(hours=2),)


def test_the_clock_moves_inside_a_test_transaction_too(db: None, clock: Clock) -> None:
    before = clock.now()
    clock.move(timedelta(minutes=5))
    assert clock.now() - before >= timedelta(minutes=5)


def test_a_worker_becomes_ready_and_dies_whole(workers: Workers) -> None:
    worker = workers.start()
    identity = worker.identity
    assert identity is not None
    assert len(identity.members()) > 1
    worker.kill()
    assert identity.members() == []


def test_the_pages_answer(web: Web) -> None:
    assert answers(f"{web.url}/healthz")


@pytest.mark.browser
def test_a_browser_opens_a_page(page: Page) -> None:
    response = page.goto("/healthz")
    assert response is not None
    assert response.status == 200
