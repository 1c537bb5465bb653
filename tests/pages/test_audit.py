"""The audit log: what was recorded and what was refused, for whom."""

from __future__ import annotations

import pytest
from django.conf import settings
from playwright.sync_api import Browser

from accounts.models import RightChange
from accounts.rights import Right, withdraw_right
from approvals.models import Verdict
from runs.clock import database_now
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, read
from tests.pages.test_review import address
from tests.people import House


def entries(page: Node) -> list[str]:
    return [row.text for row in page.one("table").one("tbody").all("tr")]


def test_recorded_and_refused_stand_together(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    sign_in(house.viewer).post(
        address(run), {"decision": "reject", "reason": "I do not like it", "submission": "1" * 32}
    )
    house.decide(run, house.approver, Verdict.REJECT, "amount above the cap")

    page = read(sign_in(house.viewer).get("/audit/"))

    first, second, third = entries(page)[:3]
    assert "Approver" in first and "rejected plan v1. “amount above the cap”" in first and "recorded" in first
    assert "Viewer" in second and "refused the right is missing" in second and "I do not like it" in second
    assert "tried: Reject a plan" in second
    assert "Operator" in third and "started the run" in third


def test_filters(house: House, sign_in: SignIn) -> None:
    run, other = house.waiting("1"), house.waiting("2")
    house.decide(run, house.approver, Verdict.REJECT, "amount above the cap")
    client = sign_in(house.viewer)

    def found(query: str) -> int:
        page = read(client.get(f"/audit/?{query}"))
        return len(entries(page)) if page.all("table") else 0

    rights = RightChange.objects.filter(tenant=house.tenant).count()
    assert found("") == 3 + rights
    assert found("person=Approver&action=reject") == 1
    assert found("action=rights") == rights
    assert found("action=rights&person=Viewer") == 1
    assert found("action=rights&result=refused") == 0
    assert found(f"action=rights&run={run.pk}") == 0
    assert found(f"run={other.pk}") == 1
    assert found("action=reject") == 1
    assert found("result=refused") == 0
    assert found("action=nonsense&page=77&person=%00") == 3 + rights


def test_a_stranger_sees_none_of_it(house: House, world: World, sign_in: SignIn) -> None:
    house.decide(house.waiting(), house.approver, Verdict.REJECT, "amount above the cap")

    page = read(sign_in(house.stranger).get("/audit/"))

    assert "to Stranger" in page.text
    assert not any(name in page.one("main").part("rows").text for name in ("Approver", "Viewer", "reject"))


def test_rights_are_told_in_words(house: House, sign_in: SignIn) -> None:
    now = database_now()
    withdraw_right(to=house.second, right=Right.APPROVE_PLANS, obj=house.agent, actor=house.operator, now=now)

    first, *others = entries(read(sign_in(house.viewer).get("/audit/?action=rights")))

    assert "Operator" in first and "withdrew “Approve plans” from Second" in first and "Payer" in first
    assert any("a command" in row and "granted “See runs” to Viewer" in row for row in others)


def test_no_attempt_is_shown_as_its_code(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    sent = {"submission": "1" * 32}
    client.post(address(run), sent)
    client.post(f"/runs/{run.pk}/decide/", {**sent, "choice": "drop table"})

    page = read(client.get("/audit/?result=refused"))

    assert {row.split("tried: ")[1].split(" run_")[0] for row in entries(page)} == {
        "Decide",
        "something that no form offers",
    }


@pytest.mark.browser
def test_each_column_can_be_read_on_a_desktop(house: House, sign_in: SignIn, browser: Browser) -> None:
    client = sign_in(house.viewer)
    client.post(address(house.waiting()), {"decision": "reject", "reason": "no", "submission": "1" * 32})
    html = client.get("/audit/").content.decode()

    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_content(html, wait_until="commit")
    page.add_style_tag(path=str(settings.BASE_DIR / "static" / "console.css"))
    boxes = [head.bounding_box() for head in page.locator("table.audit thead th").all()]
    cut = page.locator("table.audit td").evaluate_all(
        "cells => cells.filter(c => c.scrollWidth > c.clientWidth).length"
    )
    context.close()

    assert len(boxes) == 5 and cut == 0
    assert all(box and box["width"] >= 110 for box in boxes)
