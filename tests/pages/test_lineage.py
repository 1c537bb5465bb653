"""A run and its successor name each other, and what was written against the old plan is shown beside the new one."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.test import Client

from approvals.models import Verdict
from runs import actions
from runs.models import Run
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, read
from tests.people import House, advance


@pytest.fixture
def successor(house: House) -> Run:
    """It waits for approval; the plan of the run before was rejected with words."""
    old = house.waiting()
    house.decide(old, house.approver, Verdict.REJECT, "the <b>wrong</b> supplier")
    advance(old)
    done = actions.restart_run(
        person=house.operator, run_id=old.pk, note="with the right one", submission=uuid4()
    )
    new = Run.objects.get(pk=done.run)
    advance(new)
    return new


def page_of(client: Client, run_id: str | None, rest: str = "") -> Node:
    return read(client.get(f"/runs/{run_id}/{rest}"))


def test_the_successor_names_the_run_before(house: House, successor: Run, sign_in: SignIn) -> None:
    old = successor.predecessor_id
    page = page_of(sign_in(house.second), successor.pk)

    said = page.part("predecessor")
    assert said.text.startswith(f"Successor of {old} , restarted by Operator at ")
    assert said.text.endswith("“ with the right one ”")
    assert said.one("a").attrs["href"] == f"/runs/{old}/"
    assert f"started the run as the successor of {old}" in page.part("timeline").text


def test_the_run_before_names_its_successor(house: House, successor: Run, sign_in: SignIn) -> None:
    action = page_of(sign_in(house.viewer), successor.predecessor_id).part("next-safe-action")

    assert f"Go on with {successor.pk}." in action.text
    assert f"/runs/{successor.pk}/" in [a.attrs["href"] for a in action.all("a")]


@pytest.mark.parametrize("where", ["", "handoff/", "plan/1/review/"])
def test_an_approver_reads_what_was_objected_before(
    house: House, successor: Run, sign_in: SignIn, where: str
) -> None:
    said = page_of(sign_in(house.second), successor.pk, where).part("objections").text

    assert "In the run before" in said
    assert "Approver: rejected, Plan v1" in said
    assert "the <b>wrong</b> supplier" in said


def test_the_plain_text_names_the_run_before(house: House, successor: Run, sign_in: SignIn) -> None:
    text = sign_in(house.viewer).get(f"/runs/{successor.pk}/handoff/?format=text").content.decode()

    assert f"Successor of {successor.predecessor_id}\n" in text


def test_a_first_run_has_none_before(house: House, sign_in: SignIn) -> None:
    page = page_of(sign_in(house.viewer), house.waiting().pk)

    assert not page.all(data_testid="predecessor") and not page.all(data_testid="objections")
