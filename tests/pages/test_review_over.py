"""The review page where there is nothing left to decide, for everybody or for this person."""

from __future__ import annotations

from datetime import timedelta

import pytest

from approvals.models import Verdict
from runs.machine.state import State
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, read
from tests.pages.test_review import address, approval
from tests.people import House, advance

OPEN = ("Expires in", "If you approve", "No rule", "approval is needed", "What will be executed")


def assert_over(page: Node, *said: str) -> None:
    """Nothing speaks of a decision to come; what became of it stands first, and all steps are listed."""
    text = page.text
    assert [words for words in OPEN if words in text] == []
    assert all(words in page.part("decided").text for words in said)
    assert text.index("This plan cannot be decided any more") < text.index("What this plan contains")
    assert len(page.part("exec-list").all("article")) == 2
    assert not page.one("main").all(data_testid="decision-form")


@pytest.mark.parametrize(
    ("verdict", "said"),
    [(Verdict.REJECT, "Second rejected it at"), (Verdict.APPROVE, "Second approved it at")],
)
def test_a_decided_plan_says_who_decided(house: House, sign_in: SignIn, verdict: Verdict, said: str) -> None:
    run = house.waiting()
    house.decide(run, house.second, verdict, "not this supplier")

    assert_over(read(sign_in(house.approver).get(address(run))), said)


def test_an_executed_plan_lists_what_was_done(house: House, world: World, sign_in: SignIn) -> None:
    run = house.approved()
    assert advance(run).state is State.SUCCEEDED

    page = read(sign_in(house.approver).get(address(run)))

    assert_over(page, "Approver approved it at", "used up")


def test_an_expired_request_says_when(house: House, sign_in: SignIn, clock: Clock) -> None:
    run = house.waiting()
    clock.move(timedelta(minutes=1))
    advance(run)

    page = read(sign_in(house.approver).get(address(run)))

    assert_over(page, "The time for approving it is over.", "Nobody decided; the request was closed at")


def test_one_without_the_right_is_told_first_who_can(house: House, sign_in: SignIn) -> None:
    text = read(sign_in(house.viewer).get(address(house.waiting()))).text

    assert "No rule" not in text and "If you approve" not in text
    assert text.index("People who can: Approver, Second.") < text.index("What will be executed")
    assert "Approving it allows the agent to make exactly these 2 changes." in text


@pytest.mark.parametrize("reason", ["", "the amount fits the order"])
def test_after_a_conflict_there_is_nothing_to_choose(house: House, sign_in: SignIn, reason: str) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    sent = {**approval(client, run), "reason": reason}
    house.decide(run, house.second, Verdict.REJECT, "amount above the cap")

    page = read(client.post(address(run), sent))

    assert not page.all("input", type="radio") and not page.all(id="field-phrase")
    assert page.text.count("was not recorded") == 1
    assert [x.text for x in page.all("textarea")] == ([reason] if reason else [])
    assert ("Copy my text" in page.text) == bool(reason)
    assert "See what is true now" in page.part("decision-form").text
