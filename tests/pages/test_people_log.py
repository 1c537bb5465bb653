"""The first person of an installation, the demo's groups, and what the audit log tells of people."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from accounts.groups import give_right, leave_group
from accounts.models import PeopleChange, TenantGroup, User
from accounts.organisations import may_organise
from accounts.people import add_member
from accounts.rights import Right, may
from examples.refunds.demo.people import PEOPLE, make_house
from runs import agents
from runs.clock import database_now
from runs.models import Agent
from tests.pages.reading import read

pytestmark = pytest.mark.django_db
PASSWORD = "a long walk by the sea"


def test_the_first_person_gets_a_link_and_can_make_everybody_else() -> None:
    told = StringIO()
    call_command("first_person", "ada", "acme", address="https://console.example/", stdout=told)
    link = told.getvalue().strip()
    assert link.startswith("https://console.example/password/")
    client, path = Client(), link.removeprefix("https://console.example")
    set_ = client.post(path, {"password": PASSWORD, "again": PASSWORD})["Location"]
    assert "Your password is set." in read(client.get(set_)).text
    client.post("/login/", {"username": "ada", "password": PASSWORD})
    assert client.get("/people/").status_code == client.get("/organisations/").status_code == 200
    assert may_organise(User.objects.get(username="ada"))
    with pytest.raises(CommandError, match="hyphen"):
        call_command("first_person", "bob", "No Slug", stdout=told)
    assert not User.objects.filter(username="bob").exists()


def test_an_organisation_gets_an_agent_whose_code_is_installed(settings: Settings) -> None:
    settings.HANDOFF_AGENTS = ["examples.refunds.agent:REFUNDS"]
    agents.registered.cache_clear()
    told = StringIO()
    call_command("first_person", "ada", "acme", stdout=told)
    for title in ("", "Money back", "Money back"):
        call_command("add_agent", "refunds", "acme", title=title, stdout=told)
    agent = Agent.objects.get(tenant__slug="acme")
    assert (agent.name, agent.title) == ("refunds", "Money back")
    told_of = PeopleChange.objects.filter(tenant=agent.tenant, action__startswith="agent_").order_by("pk")
    titles = [(line.action, line.detail.get("was"), line.detail["became"]) for line in told_of]
    assert titles == [
        ("agent_added", None, "Supplier refunds"),
        ("agent_titled", "Supplier refunds", "Money back"),
    ]
    ada, now = User.objects.get(username="ada"), database_now()
    give_right(to=ada, right=Right.START_RUNS, place=agent, tenant=agent.tenant, actor=ada, now=now)
    assert may(ada, Right.START_RUNS, agent)
    for wrong in (("refunds", "nowhere"), ("nothing", "acme")):
        with pytest.raises(CommandError, match=r"no organisation|HANDOFF_AGENTS names: refunds"):
            call_command("add_agent", *wrong, stdout=told)
    agents.registered.cache_clear()


def test_the_demos_people_sit_in_groups_and_keep_the_rights_that_the_story_takes() -> None:
    passwords = {who.username: PASSWORD for who in PEOPLE}
    agent, people = make_house(passwords)
    finance = TenantGroup.objects.get(title="Finance")
    assert list(finance.group.user_set.all()) == [people["mei"]]
    assert may(people["olga"], Right.MANAGE_PEOPLE, agent.tenant)
    leave_group(group=finance, person=people["mei"], actor=None, now=database_now())
    make_house(passwords)
    assert not finance.group.user_set.exists()


def test_the_audit_log_tells_those_who_oversee_them_what_was_done_with_people() -> None:
    agent, people = make_house({who.username: PASSWORD for who in PEOPLE})
    stranger = User.objects.create_user(username="zed", password=PASSWORD)
    add_member(person=stranger, tenant=agent.tenant, actor=people["olga"], now=database_now())
    Client().post("/login/", {"username": "zed", "password": "wrong"})
    pages = {}
    for who in ("olga", "viktor"):
        client = Client()
        client.post("/login/", {"username": who, "password": PASSWORD})
        pages[who] = client.get("/audit/?action=people").content.decode()
    assert "added a person to the organisation" in pages["olga"]
    assert "name, password or code were wrong" in pages["olga"]
    assert "added a person to the organisation" not in pages["viktor"] and "were wrong" not in pages["viktor"]
    assert "signed in" in pages["viktor"]
