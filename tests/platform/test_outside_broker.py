"""`manage.py up` with a broker that somebody else runs: Valkey or RabbitMQ, whichever the tests have."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.embedded.identity import wait_until
from tests.fixtures.brokers import Broker
from tests.platform.test_supervisor import Installation


class Connected(Installation):
    """An installation that was told of a broker."""

    wanted = frozenset({"postgres", "worker", "beat", "web"})

    def __init__(self, folder: Path, broker: Broker) -> None:
        super().__init__(folder)
        self.broker = broker

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "CELERY_BROKER_URL": self.broker.url}


@pytest.fixture
def installation(tmp_path: Path, broker: Broker) -> Iterator[Connected]:
    made = Connected(tmp_path / "home", broker)
    yield made
    made.end()


def test_it_starts_no_broker_and_works_on_that_one(installation: Connected, broker: Broker) -> None:
    installation.up("--port", "8400").wait()
    began = time.monotonic()

    assert "valkey" not in installation.processes()
    assert wait_until(lambda: installation.swept_since(began), seconds=40, every=0.5)
    with urllib.request.urlopen(f"{installation.url()}/readyz", timeout=5) as answer:
        assert json.load(answer)["parts"]["broker"] == {"ok": True, "server": broker.name}
