"""The pages about agents: who serves which version, what waits, and who may see it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_django import Settings

from accounts.rights import Right, withdraw_right
from runs import actions, agents, recovery
from runs.clock import database_now
from runs.models import Run, Worker
from tests.outside import PAYER, World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, read
from tests.people import House

OLD = replace(PAYER, version="0")


def row(page: Node, version: str) -> str:
    rows = page.part("agents").one("tbody").all("tr")
    return next(x.text for x in rows if x.all("a", href=f"/agents/payer/{version}/"))


@pytest.fixture
def old_run(house: House, settings: Settings) -> Run:
    """A run of a version that this console has no more, handed to a person because no worker served it."""
    settings.HANDOFF_AGENTS = ["tests.contract.test_agents_page:OLD"]
    agents.registered.cache_clear()
    run = actions.start_run(
        agent=house.agent, version="0", goal="Pay order 7", input={"order": "7", "amount": "5.00"}, start_key="old",
        creator=house.operator, principal=house.operator,
    )  # fmt: skip
    settings.HANDOFF_AGENTS = ["tests.outside:PAYER"]
    agents.registered.cache_clear()
    actions.stop_unserved(run_id=run.pk, version="0")
    return run


def test_a_version_shows_its_workers_and_open_runs(house: House, world: World, sign_in: SignIn) -> None:
    house.waiting()
    client = sign_in(house.viewer)
    assert "nobody" in row(read(client.get("/agents/")), "1")
    recovery.announce("worker@here")

    assert "worker@here 1 0" in row(read(client.get("/agents/")), "1")
    version = read(client.get("/agents/payer/1/"))
    assert "worker@here" in version.part("version-now").text
    assert "pay_blind (bank)" in version.part("contract-blind").text


def test_a_worker_that_was_not_heard_of_serves_nothing(house: House, sign_in: SignIn) -> None:
    long_ago = database_now() - timedelta(hours=1)
    Worker.objects.create(name="gone", serves=["agent.payer.1"], started_at=long_ago, last_seen_at=long_ago)
    assert "gone" not in row(read(sign_in(house.viewer).get("/agents/")), "1")


def test_runs_that_no_worker_serves_are_counted(house: House, old_run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.viewer)

    page = read(client.get("/agents/"))
    assert "nobody Runs of this version wait for a person, because no worker had their code. 1 1" in row(
        page, "0"
    )
    version = read(client.get("/agents/payer/0/")).one("main")
    assert "The code of this version is not part of this console" in version.text


def test_what_does_not_exist_is_not_found(house: House, sign_in: SignIn) -> None:
    client = sign_in(house.viewer)
    for address in ("/agents/payer/7/", "/agents/nobody/1/", "/agents/nobody/"):
        assert client.get(address).status_code == 404
    assert row(read(client.get("/agents/payer/")), "1")


def test_without_the_right_there_is_nothing(house: House, sign_in: SignIn) -> None:
    withdraw_right(to=house.viewer, right=Right.VIEW_RUNS, obj=house.agent, actor=None, now=database_now())
    client = sign_in(house.viewer)

    assert "There is no agent that you may see." in read(client.get("/agents/")).text
    assert client.get("/agents/payer/1/").status_code == 404


def test_people_of_another_house_do_not_see_its_runs(house: House, old_run: Run, sign_in: SignIn) -> None:
    house.waiting()

    page = read(sign_in(house.stranger).get("/agents/"))
    assert row(page, "1").endswith("0 0")
    assert sign_in(house.stranger).get("/agents/payer/0/").status_code == 404
