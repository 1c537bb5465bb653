"""Ending a run with what it did undone, in a real browser, from the run's page to its end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from runs.ledger import load
from runs.machine.state import State
from tests.outside import World
from tests.pages.test_browser import sign_in
from tests.people import House, advance

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def console_with_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The web server, which starts after this, has the runs' agent."""
    monkeypatch.setenv("HANDOFF_AGENTS", "tests.outside:PAYER")


def test_an_operator_answers_one_run_and_undoes_another(
    house: House, world: World, open_page: Callable[[], Page]
) -> None:
    give, pay = {"tool": "give", "order": "7"}, {"tool": "pay", "order": "8"}
    run = house.scripted([give, pay, {"signal": "go"}, {"tool": "tell", "order": "7"}])
    page = sign_in(open_page(), "operator")
    page.goto(f"/runs/{run.pk}/")
    expect(page.locator("[data-testid=next-safe-action]")).to_contain_text("Wait for the answer “go”")

    page.click("[data-testid=next-safe-action] >> text=Other actions")
    assert page.locator("[name=choice]:checked").count() == 0
    page.check("[name=choice][value=undo]")
    page.fill("[name=reason]", "ordered by mistake")
    page.click("main button[type=submit]")
    expect(page.locator("[data-testid=result]")).to_contain_text("that what it did is undone")
    assert advance(run).state is State.CANCELLED
    page.reload()

    expect(page.locator("[data-effect=E-1] [data-testid=undone-by]")).to_have_text("undone by E-3")
    expect(page.locator("[data-testid=left-standing]")).to_contain_text("E-2 (pay 10.00 EUR for order 8)")
    assert (world.times("take_back:7"), world.times("tell:7")) == (1, 0)

    other = house.scripted([{"signal": "go"}, {"tool": "pay", "order": "9"}])
    page.goto(f"/runs/{other.pk}/")
    page.click("[data-testid=next-safe-action] >> text=Give the answer “go”")
    page.fill("[name=payload]", "all is well")
    page.dblclick("text=Give the answer >> nth=-1")
    expect(page.locator("[data-testid=result]")).to_contain_text("Your answer was recorded.")
    assert [x.payload for x in load(other.pk).signals] == ['"all is well"']
