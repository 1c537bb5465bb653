"""Revising the goal in the console: what is shown before, what is committed, and what a person is told instead."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.rights import Right, grant_right
from approvals.models import Attempt
from approvals.policy import Party, RulePolicy
from runs import agents
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import RequestStatus, State
from runs.models import Run
from tests.outside import PAYER, POLICY, World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.people import House, advance, assert_replays

HOSTILE = "Pay\u202e half of <script>alert(1)</script> order\u200b 2000 的一半"
WHY = "The order was cut by half."
RULES = tuple(replace(rule, not_by=frozenset({Party.GOAL_REVISER})) for rule in POLICY.rules)
STRICT = replace(PAYER, policy=RulePolicy(version="1", rules=RULES))


def address(run: Run) -> str:
    return f"/runs/{run.pk}/goal/revise/"


def form(page: Node) -> dict[str, str]:
    return form_of(page, testid="revise-form").sends()


def compared(client: Client, run: Run, text: str, reason: str = WHY) -> Node:
    """The first step: the page with the difference."""
    sent = {**form(read(client.get(address(run)))), "text": text, "reason": reason, "step": "compare"}
    answer = client.post(address(run), sent)
    assert answer.status_code == 200, read(answer).text
    return read(answer)


def commit(page: Node) -> dict[str, str]:
    """What the second step sends."""
    return {**form(page), "step": "commit"}


def test_a_goal_is_revised_in_two_steps(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    who = read(client.get(f"/runs/{run.pk}/")).part("who-may-act")
    assert "Revise the goal" in who.text
    page = read(client.get(address(run)))
    assert "“ Pay order 2000 ” Operator" in page.part("goals").text
    assert "The request to approve plan v1 is voided." in page.part("impact").text

    page = compared(client, run, "Pay half of order 2000")

    assert page.part("difference").one("ins").text == "+ added: half of"
    assert not page.part("difference").all("del")
    assert "Plan v1 loses its validity at once" in page.part("impact").text
    assert load(run.pk).goal.version == 1
    done = client.post(address(run), commit(page), follow=True)

    shown = read(done)
    assert "The goal was revised." in shown.part("result").text
    assert f"Operator revised the goal from v1 to v2: “Pay half of order 2000” “{WHY}”" in shown.text
    history = shown.part("goal-versions").text
    assert "v2, committed now Operator" in history and "v1, original Operator" in history
    assert f"Reason: {WHY}" in history
    assert "The committed goal changed from v1 to v2." in shown.part("approvals").text
    state = assert_replays(run)
    assert (state.state, state.goal.text) == (State.PLANNING, "Pay half of order 2000")
    again = client.post(address(run), commit(page))
    assert (again.status_code, load(run.pk).goal.version) == (302, 2)
    assert not Attempt.objects.exists()


def test_the_text_can_be_changed_before_it_is_committed(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    page = compared(client, run, "Pay half")

    back = read(client.post(address(run), {**form(page), "step": "edit"}))

    assert [x.text for x in back.all("textarea")] == ["Pay half", WHY]
    assert load(run.pk).goal.version == 1


def test_a_goal_is_kept_as_it_was_typed(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    client.post(address(run), commit(compared(client, run, f"{HOSTILE}\r\nand no more")))

    assert load(run.pk).goal.text == f"{HOSTILE}\nand no more"
    for url in (f"/runs/{run.pk}/", f"/runs/{run.pk}/handoff/"):
        html = client.get(url).content.decode().partition("</title>")[2]
        assert "<script>alert" not in html and "\u202e" not in html and "U+202E" in html
    text = client.get(f"/runs/{run.pk}/handoff/?format=text").content.decode()
    assert "Goal v1, Operator" in text and f"Reason: {WHY}" in text


def test_what_cannot_be_a_goal_is_refused_with_the_form_as_typed(
    house: House, world: World, sign_in: SignIn
) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    sent = {**form(read(client.get(address(run)))), "step": "compare"}
    for text, reason, said in (
        ("", WHY, "Enter the new goal."),
        ("Pay order 2000", WHY, "word for word: there is nothing to revise"),
        ("x" * 2001, WHY, "Use at most 2000 characters."),
        ("Pay half", "no", "Enter a reason of at least 10 characters."),
    ):
        for step in ("compare", "commit"):
            answer = client.post(address(run), {**sent, "text": text, "reason": reason, "step": step})
            assert answer.status_code == 422
            assert said in read(answer).part("errors").text
            assert [x.text for x in read(answer).all("textarea")] == [text, reason]
    assert client.post(address(run), {**sent, "step": "else", "text": "x", "reason": WHY}).status_code == 422
    assert load(run.pk).goal.version == 1


def test_who_comes_second_sees_both_texts(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    first, second = compared(client, run, "Pay half"), compared(client, run, "Pay a third")
    client.post(address(run), commit(first))

    answer = client.post(address(run), commit(second))

    assert answer.status_code == 409
    panel = read(answer).part("conflict").text
    assert "Goal v1: “Pay order 2000”" in panel and "Goal v2: “Pay half”" in panel
    assert read(answer).all("textarea")[0].text == "Pay a third"
    assert load(run.pk).goal.text == "Pay half"
    assert Attempt.objects.get().refusal == "stale"
    sent = {**form(read(answer)), "step": "compare"}
    assert client.post(address(run), sent).status_code == 200


def test_another_impact_than_was_shown_commits_nothing(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    page = compared(client, run, "Pay half")
    house.decide(run, house.approver)

    answer = client.post(address(run), commit(page))

    assert answer.status_code == 409
    panel = read(answer).part("conflict").text
    assert "The request to approve plan v1 is voided." in panel
    assert "The approval of plan v1 by Approver is voided." in panel
    assert load(run.pk).requests[-1].status is RequestStatus.VALID


def test_what_is_in_doubt_and_what_stands_is_said(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.approved(), sign_in(house.operator)
    world.answers, world.outage = ["lost"], "the bank is closed"
    advance(run)

    impact = read(client.get(address(run))).part("impact").text

    assert "Nothing more is sent on plan v1. It loses its validity once what it began is settled." in impact
    assert "E-1 (pay 250.00 EUR for order 2000, cannot be undone) may be happening" in impact
    assert "No obligation is open." in impact
    house.revise(run)
    plan = read(client.get(f"/runs/{run.pk}/")).part("plan").text
    assert "Made for goal v1; committed now is v2. Nothing more is sent on it" in plan


def test_a_run_that_is_over_says_what_to_do(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.start("7", "1.00"), sign_in(house.operator)
    sent = {**form(read(client.get(address(run)))), "text": "Pay half", "reason": WHY}
    advance(run)

    assert "Start another run for another goal." in read(client.get(address(run))).part("over").text
    for step in ("compare", "commit"):
        answer = client.post(address(run), {**sent, "step": step})
        assert answer.status_code == 409
        assert read(answer).one("textarea").text == "Pay half"
    assert "Revise the goal" not in read(client.get(f"/runs/{run.pk}/")).part("who-may-act").text


def test_who_may_not_sees_who_can(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.viewer)
    page = read(client.get(address(run)))
    assert "People who can: Operator." in page.part("why-not").text
    assert not page.one("main").all("form")
    assert client.post(address(run), {"step": "edit"}).status_code == 403


@pytest.fixture
def kim(house: House, settings: Settings) -> House:
    """The second approver may revise goals too, and the policy keeps whoever did from approving."""
    settings.HANDOFF_AGENTS = ["tests.pages.test_goal:STRICT"]
    agents.registered.cache_clear()
    grant_right(to=house.second, right=Right.REVISE_GOALS, obj=house.agent, actor=None, now=database_now())
    return house


def test_who_revised_the_goal_may_not_approve_plans_for_it(kim: House, world: World, sign_in: SignIn) -> None:
    run, client = kim.waiting(), sign_in(kim.second)
    page = compared(client, run, "Pay half of order 2000")
    assert (
        "You will not be able to approve plans made for goal v2 (separation of duties)."
        in page.part("impact").text
    )
    client.post(address(run), commit(page))
    advance(run)

    review = read(client.get(f"/runs/{run.pk}/plan/2/review/"))

    why = "Somebody else must decide, because you wrote the goal that the plan is for. People who can: Approver."
    assert why in review.part("why-not").text
    assert not review.one("main").all("form")
    assert (
        "v2, committed now: “ Pay half of order 2000 ”"
        in read(client.get(f"/runs/{run.pk}/plan/2/")).part("plan-goal").text
    )
    old = read(client.get(f"/runs/{run.pk}/plan/1/"))
    assert "v1, revised since: committed now is v2" in old.part("plan-goal").text
