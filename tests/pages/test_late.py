"""A plan with an argument left open: what approvers see of it, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from runs.ledger import load
from runs.machine.canonical import digest
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import House, advance

PRICE = {"from": "signal", "step": "hear:price", "least": "1.00", "most": "120.00"}
STEPS: list[Mapping[str, object]] = [{"signal": "price"}, {"tool": "pay", "order": "7", "late": PRICE}]


def test_bounds_and_source_are_shown_before_and_the_value_after(
    house: House, world: World, sign_in: SignIn
) -> None:
    run, client = house.scripted(STEPS), sign_in(house.approver)
    plan = load(run.pk).plan
    assert plan is not None

    page = read(client.get(f"/runs/{run.pk}/plan/1/review/"))

    shown = page.part("exec-list").text
    assert "bound later: between 1.00 and 120.00" in shown
    assert "the answer that step hear:price waits for" in shown
    assert "Until then it counts as 120.00." in shown
    assert "made of all arguments, once those that come later are bound" in shown
    assert digest("plan", plan.document) == plan.digest and plan.digest in page.text
    (late,) = json.loads(plan.document)["steps"][1]["late"]
    assert (late["bounds"]["least"], late["bounds"]["most"]) == ("1.00", "120.00")
    assert "bound later: between" in read(client.get(f"/runs/{run.pk}/plan/1/")).text

    house.decide(run, house.approver)
    house.answer(run, "price", '"20.00"')
    advance(run)
    effects = read(client.get(f"/runs/{run.pk}/")).text
    assert "bound late, from the answer that step hear:price waits for, within 1.00 … 120.00" in effects
    assert 'What the plan left open: amount = "20.00"' in effects


def test_a_value_outside_is_told_with_its_bound(house: House, world: World, sign_in: SignIn) -> None:
    run = house.scripted(STEPS, [{"signal": "again"}])
    house.decide(run, house.approver)
    house.answer(run, "price", '"120.01"')
    advance(run)
    client = sign_in(house.viewer)
    told = 'pay:7 amount had to be within 1.00 … 120.00 and came as "120.01". Nothing was sent.'
    for address in ("", "plan/1/", "plan/1/review/", "handoff/"):
        assert told in read(client.get(f"/runs/{run.pk}/{address}")).text, address
    assert world.executed == []
