"""People with a browser: the house of every run test, and a client that is signed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from tests.runs.conftest import house, world

__all__ = ["house", "world"]

SignIn = Callable[[User], Client]


@pytest.fixture(autouse=True)
def time_to_decide(settings: Settings) -> None:
    """Requests stand long enough for a slow browser; tests of their end move the clock by a minute."""
    settings.HANDOFF_DURATIONS = replace(settings.HANDOFF_DURATIONS, approval_stands=timedelta(seconds=50))


@pytest.fixture
def sign_in() -> SignIn:
    """A client that is signed in as a person. Enforces CSRF nowhere: the tokens are Django's own."""

    def signed_in(person: User) -> Client:
        client = Client()
        client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return signed_in
