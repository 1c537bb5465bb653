"""An organisation is let use a configured agent on its page: by whom, logged how, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import uuid4

import pytest
from django.db import connection
from django.urls import reverse
from pytest_django import Settings

from accounts.models import PeopleChange, User
from accounts.organisations import make_organiser
from accounts.rights import Right, grant_right, may
from runs import actions, agents
from runs.clock import database_now
from runs.models import Agent
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.pages.test_people import manager
from tests.people import House

__all__ = ["manager"]
ACME = "/organisations/acme/"
TITLE = "Money\u202e <b>back</b>"


@pytest.fixture(autouse=True)
def configured(house: House, settings: Settings) -> Iterator[None]:
    settings.HANDOFF_AGENTS = ["tests.outside:PAYER", "examples.refunds.agent:REFUNDS"]
    agents.registered.cache_clear()
    yield
    agents.registered.cache_clear()


def test_who_manages_people_lets_the_organisation_use_an_agent(
    house: House, manager: User, sign_in: SignIn
) -> None:
    client = sign_in(manager)
    page = read(client.get(ACME))
    assert "Payer payer" in page.part("agents-used").text
    form = form_of(page, testid="use-form")
    assert [x.attrs["value"] for x in form.all("option")] == ["", "refunds"]
    sent = {**form.sends(), "agent": "refunds", "title": TITLE, "do": "use"}

    for _again in range(2):  # a form that is sent twice is one
        done = client.post(ACME, sent)
        page = read(client.get(done["Location"]))
        assert "The organisation uses “Money [U+202E] <b>back</b>” (refunds) now." in page.part("result").text

    agent = Agent.objects.get(tenant=house.tenant, name="refunds")
    assert agent.title == TITLE and not page.all(data_testid="use-form")
    (line,) = PeopleChange.objects.filter(tenant=house.tenant)
    assert (line.action, line.actor, line.detail) == (
        "agent_added", manager, {"name": "refunds", "became": TITLE},
    )  # fmt: skip
    audit = client.get("/audit/?action=people").content.decode()
    assert "let an organisation use an agent" in audit
    grant_right(to=house.viewer, right=Right.START_RUNS, obj=agent, actor=None, now=database_now())
    assert may(house.viewer, Right.START_RUNS, agent)


def test_what_stands_or_is_not_configured_is_refused_and_kept_as_tried(
    house: House, manager: User, sign_in: SignIn
) -> None:
    client = sign_in(manager)
    for name, why in (
        ("payer", "Acme uses the agent “payer” already, as “Payer”."),
        ("nothing", "No agent “nothing” is installed here. HANDOFF_AGENTS names: payer, refunds."),
        ("", "No agent “–” is installed here."),
        ("refunds", "Enter a title of at most 200 characters"),
    ):
        title = "x" * 201 if name == "refunds" else "As typed"
        sent = {"do": "use", "agent": name, "title": title, "submission": str(uuid4())}

        answer = client.post(ACME, sent)

        assert answer.status_code == 422 and why in read(answer).part("errors").text
        assert form_of(read(answer), testid="use-form").sends()["title"] == title
        assert read(answer).one(id="field-name").attrs["value"] == "Acme"
    assert Agent.objects.filter(tenant=house.tenant).count() == 1 and not PeopleChange.objects.exists()
    tried = read(client.get("/audit/?result=refused")).one("main").text
    assert "Let an organisation use an agent" in tried
    assert "the organisation uses the agent already" in tried and "no such agent is installed" in tried


def test_nobody_else_may_and_who_manages_organisations_may(house: House, sign_in: SignIn) -> None:
    sent = {"do": "use", "agent": "refunds", "submission": str(uuid4())}
    grant_right(
        to=house.viewer, right=Right.MANAGE_POLICIES, obj=house.tenant, actor=None, now=database_now()
    )
    for person in (house.viewer, house.stranger):
        assert sign_in(person).post(ACME, sent).status_code == 404
    assert not Agent.objects.filter(tenant=house.tenant, name="refunds").exists()

    make_organiser(person=house.stranger, actor=None, now=database_now())

    assert (
        sign_in(house.stranger)
        .post(ACME, sent)["Location"]
        .startswith(reverse("organisation", args=["acme"]))
    )
    assert Agent.objects.get(tenant=house.tenant, name="refunds").title == "Supplier refunds"


def test_two_at_once_add_it_once(house: House) -> None:
    begin = Barrier(2)

    def add(_number: int) -> str:
        try:
            begin.wait(5)
            actions.add_agent(tenant=house.tenant, name="refunds", title="", actor=None, now=database_now())
        except actions.AgentStandsError:
            return "stands"
        finally:
            connection.close()
        return "added"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(add, range(2))) == ["added", "stands"]
    assert PeopleChange.objects.filter(tenant=house.tenant, action="agent_added").count() == 1
