"""What `make demo` sets up: people who can sign in, orders, runs; and nothing twice."""

from __future__ import annotations

import stat
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from accounts.rights import Right, may, withdraw_right
from console.embedded.home import Home
from examples.refunds.demo.people import PEOPLE, passwords_in
from runs.clock import database_now
from runs.models import Agent, Run
from tests.examples.outside import Outside


@pytest.fixture
def home(live_db: object, service: Outside, settings: Settings, tmp_path: Path) -> Home:
    """An installation's own folder, an empty database, a service with nothing in it."""
    home = Home(tmp_path / "home")
    home.make()
    settings.HANDOFF_HOME = home
    settings.HANDOFF_AGENTS = ["examples.refunds.agent:REFUNDS"]
    return home


def _setup() -> str:
    out = StringIO()
    call_command("demo_setup", stdout=out)
    return out.getvalue()


def test_four_people_sign_in_and_twenty_five_runs_start_once(home: Home, service: Outside) -> None:
    said = _setup()
    assert "Started 25 refund runs." in said
    again = _setup()
    assert "25 refund runs were there already." in again

    passwords = passwords_in(home.sign_ins)
    assert stat.S_IMODE(home.sign_ins.stat().st_mode) == 0o600
    for who in PEOPLE:
        assert passwords[who.username] in said
        assert passwords[who.username] in again
        sent = {"username": who.username, "password": passwords[who.username]}
        assert Client().post("/login/", sent)["Location"] == "/"
    assert Run.objects.count() == 25
    with service.client() as client:
        assert len(client.get("/control/orders").json()) == 25


def test_a_second_start_sets_nothing_back(home: Home, service: Outside) -> None:
    _setup()
    agent, anton = Agent.objects.get(), User.objects.get(username="anton")
    withdraw_right(to=anton, right=Right.APPROVE_PLANS, obj=agent, actor=None, now=database_now())
    with service.client() as client:
        client.post("/control/orders/1002/touch", json={"amount": "1.00"}).raise_for_status()

    _setup()

    assert not may(anton, Right.APPROVE_PLANS, agent)
    with service.client() as client:
        order = client.get("/orders/1002").json()
    assert (order["amount"], order["version"]) == ("1.00", 2)


def test_a_right_is_withdrawn_and_granted_from_a_terminal(home: Home) -> None:
    _setup()
    agent, mei = Agent.objects.get(), User.objects.get(username="mei")
    out = StringIO()

    call_command("rights", "withdraw", "mei", "approve_plans", "refunds", stdout=out)
    assert not may(mei, Right.APPROVE_PLANS, agent)
    call_command("rights", "grant", "mei", "approve_plans", "refunds", stdout=out)
    assert may(mei, Right.APPROVE_PLANS, agent)
    call_command("rights", "grant", "mei", "approve_plans", "refunds", stdout=out)
    assert "it was so already" in out.getvalue()
    with pytest.raises(CommandError, match="There is nobody with the username nobody"):
        call_command("rights", "grant", "nobody", "approve_plans", "refunds")
    with pytest.raises(CommandError, match="There is no agent or run nothing"):
        call_command("rights", "grant", "mei", "approve_plans", "nothing")
