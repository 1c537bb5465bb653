"""Fixtures of the examples' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.examples.outside import Outside, OutsideInThread


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    """A running sandbox with nothing in it."""
    with OutsideInThread(tmp_path / "sandbox") as running:
        yield running


@pytest.fixture
def client(outside: Outside) -> Iterator[httpx.Client]:
    """A client of the running sandbox."""
    with outside.client() as connected:
        yield connected
