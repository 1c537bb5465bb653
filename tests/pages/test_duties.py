"""Separation of duties: who started a run may not approve its plan, and the pages say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pytest_django import Settings

from accounts.rights import Right, grant_right
from approvals.models import Attempt, Decision
from approvals.policy import Party, RulePolicy
from runs import agents
from runs.clock import database_now
from runs.models import Run
from tests.outside import PAYER, POLICY
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.pages.test_inbox import rows
from tests.pages.test_review import address, approval, refused
from tests.people import House

RULES = tuple(replace(rule, not_by=frozenset({Party.CREATOR})) for rule in POLICY.rules)
STRICT = replace(PAYER, policy=RulePolicy(version="1", rules=RULES))


@pytest.fixture
def run(house: House, settings: Settings) -> Iterator[Run]:
    """A waiting run whose creator holds the right to approve and is excluded by the policy."""
    settings.HANDOFF_AGENTS = ["tests.pages.test_duties:STRICT"]
    agents.registered.cache_clear()
    grant_right(to=house.operator, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now())
    yield house.waiting()


def test_the_creator_sees_who_can_instead_of_a_form(run: Run, house: House, sign_in: SignIn) -> None:
    client = sign_in(house.operator)

    who = read(client.get(f"/runs/{run.pk}/")).part("who-may-act").text
    page = read(client.get(address(run)))

    sentence = "Somebody else must decide, because you started the run. People who can: Approver, Second."
    assert f"Approve plan v1 {sentence}" in who
    assert sentence in page.part("why-not").text
    assert "You have a part in this plan: you started the run." in page.part("sod").text
    assert not page.one("main").all("form")


def test_the_creators_decision_is_refused_and_kept(run: Run, house: House, sign_in: SignIn) -> None:
    sent = approval(sign_in(house.approver), run)

    page = refused(house, sign_in(house.operator).post(address(run), sent), 403, "separation_of_duties")

    assert "somebody else must decide" in page.text
    assert "People who can: Approver, Second." in page.one("main").text
    assert Decision.objects.count() == 0
    assert Attempt.objects.get().seen == sent["digest"]


def test_the_creators_inbox_says_so(run: Run, house: House, sign_in: SignIn) -> None:
    client = sign_in(house.operator)

    assert rows(client, "?view=all&mine=1") == []
    (row,) = rows(client, "?view=all")
    assert "You have a part in this plan, so somebody else must decide." in row.text
