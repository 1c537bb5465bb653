"""Starts PostgreSQL and a broker for the tests, before pytest-django reads the settings; stops them after.

Each test session takes the first free slot, so several may run in one checkout at once. A slot keeps its
data folder: making one takes most of a second.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import pytest

from console.embedded.home import Home
from console.embedded.postgres import Postgres, postgres_child
from console.embedded.postgres_programs import binaries
from console.embedded.process import Child
from tests.chromium import how_to_get_chromium, without_browser
from tests.fixtures import postgres as chosen
from tests.fixtures.brokers import RabbitMQ, broker_of

SLOTS = 20


class TestServers:
    """The two servers of this session."""

    __test__ = False

    def __init__(self) -> None:
        chosen.choose()
        self.home, self.lock = _free_slot()
        self.home.make()
        shutil.rmtree(self.home.artifacts, ignore_errors=True)
        self.home.static.mkdir(exist_ok=True)
        self.broker = broker_of(self.home)
        self.postgres: Postgres
        self.children: list[Child] = []

    def start(self) -> None:
        self.postgres, postgres = postgres_child(self.home, losable=True)
        self.children = [postgres, self.broker.child]
        for child in self.children:
            child.start()
        for child in self.children:
            child.wait_ready()
        self.postgres.make_database()
        self._drop_leftovers()

    def _drop_leftovers(self) -> None:
        for name in self.databases("test_live_"):
            self.drop_database(name)

    def databases(self, prefix: str) -> list[str]:
        """The names of those that begin so."""
        with self.postgres.connect() as connection:
            found = connection.execute(
                "select datname from pg_database where starts_with(datname, %s)", [prefix]
            ).fetchall()
        return [str(name) for (name,) in found]

    def copy_database(self, template: str, name: str) -> None:
        with self.postgres.connect() as connection:
            # Copying files is several times as fast as logging them, and nothing here has to survive a crash.
            connection.execute(f'create database "{name}" template "{template}" strategy file_copy'.encode())

    def drop_database(self, name: str) -> None:
        with self.postgres.connect() as connection:
            connection.execute(f'drop database if exists "{name}" with (force)'.encode())

    def database_url(self, name: str = "app") -> str:
        return f"postgresql://app@/{name}?host={self.home.sockets}"

    def environment(self) -> dict[str, str]:
        agents = "examples.refunds.agent:REFUNDS" if _exists("examples.refunds.agent") else ""
        return {
            "HANDOFF_HOME": str(self.home.root),
            "HANDOFF_PROFILE": "test",
            "HANDOFF_ROLE": "command",
            "HANDOFF_AGENTS": agents,
            "HANDOFF_SECRET_KEY": "tests-only-" + "x" * 50,
            "DATABASE_URL": self.database_url(),
            "CELERY_BROKER_URL": self.broker.url,
            # Playwright keeps an event loop in the main thread, where Django would then refuse every query.
            "DJANGO_ALLOW_ASYNC_UNSAFE": "true",
        }

    def stop(self) -> None:
        for child in reversed(self.children):
            # Nothing here is worth a clean shutdown.
            child.stop(by=signal.SIGQUIT if child.program.name == "postgres" else signal.SIGKILL)
        self.lock.close()


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _free_slot() -> tuple[Home, IO[str]]:
    root = Path(__file__).resolve().parent.parent / ".handoff" / "test"
    for number in range(SLOTS):
        home = Home(root / f"pg{binaries()[1]}-{number}")
        home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (home.root / "lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            return home, lock
    raise pytest.UsageError(f"{SLOTS} test sessions run in {root} already; end some of them")


servers = pytest.StashKey[TestServers]()


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """As a wrapper this runs before pytest-django's own, which reads the settings."""
    started = TestServers()
    early_config.stash[servers] = started
    early_config.add_cleanup(started.stop)
    started.start()
    os.environ.update(started.environment())
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run browser tests last: from the first on, Playwright's event loop runs in this thread until the end.

    They are left out where asked, or where there is no browser and one test says so by failing. So are those about
    another broker than this session's.
    """
    on_rabbitmq = isinstance(config.stash[servers].broker, RabbitMQ)
    foreign = [item for item in items if item.get_closest_marker("rabbitmq") and not on_rabbitmq]
    in_browser = [item for item in items if "browser" in getattr(item, "fixturenames", ())]
    others = [item for item in items if item not in in_browser and item not in foreign]
    left_out = foreign + (in_browser if without_browser() or how_to_get_chromium() else [])
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in others + in_browser if item not in left_out]


def pytest_report_header(config: pytest.Config) -> list[str]:
    here = config.stash[servers]
    left_out = "left out, because BROWSER=none" if without_browser() else ""
    return [
        f"servers: PostgreSQL {here.postgres.major}, {here.broker.name}",
        f"browser: {left_out or how_to_get_chromium() or 'chromium'}",
    ]


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
    """What tests log may be no UTF-8, since they try what outside systems send; reports between processes are."""
    data = yield
    return {name: _utf8(value) for name, value in data.items()} if data else None


def _utf8(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {_utf8(key): _utf8(item) for key, item in value.items()}
        case list() | tuple():
            return type(value)(_utf8(item) for item in value)
        case _:
            return value
