"""The pages of a plan version say of each assumption whether it still holds, also of a version that is over."""

from __future__ import annotations

from django.urls import reverse

from tests.fixtures.clock import Clock
from tests.outside import LookUp, World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, read
from tests.people import House, advance
from tests.runs.test_assumptions import OPEN, _assuming

__all__ = ["_assuming"]


def test_what_a_plan_takes_for_true_is_shown_with_whether_it_holds(
    house: House, world: World, sign_in: SignIn, clock: Clock
) -> None:
    run, client = house.waiting(), sign_in(house.approver)

    def assumed(page: str, version: int = 1) -> Node:
        return read(client.get(reverse(page, args=[run.pk, version]))).part("assumed")

    for page in ("plan", "plan-review"):
        assert f"Holds {OPEN}" in assumed(page).text
        (seen,) = [a for a in assumed(page).all("a") if a.text.startswith("O-")]
        assert seen.attrs["href"] == f"{reverse('run', args=[run.pk])}#observation-{seen.text}"
    clock.move(2 * LookUp.half_life)
    for page in ("plan", "plan-review"):
        assert f"Basis out of date {OPEN}" in assumed(page).text


def test_of_a_plan_that_ended_it_is_shown_what_broke_it(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.approved(), sign_in(house.approver)
    world.versions["supplier"] = "v2"
    advance(run)

    old = read(client.get(reverse("plan", args=[run.pk, 1]))).part("assumed").text
    new = read(client.get(reverse("plan-review", args=[run.pk, 2]))).part("assumed").text

    assert f"Broken {OPEN}" in old and "version v1 → v2" in old and "Plan v1 ended with that." in old
    assert f"Holds {OPEN}" in new and "Broken" not in new
