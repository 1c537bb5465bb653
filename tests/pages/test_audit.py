"""The audit log: what was recorded and what was refused, for whom."""

from __future__ import annotations

from approvals.models import Verdict
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

    first, second, third = entries(page)
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

    assert found("") == 3
    assert found("person=Approver") == 1
    assert found(f"run={other.pk}") == 1
    assert found("action=reject") == 1
    assert found("result=refused") == 0
    assert found("action=nonsense&page=77&person=%00") == 3


def test_a_stranger_sees_none_of_it(house: House, world: World, sign_in: SignIn) -> None:
    house.decide(house.waiting(), house.approver, Verdict.REJECT, "amount above the cap")

    assert "No entry matches." in read(sign_in(house.stranger).get("/audit/")).text
