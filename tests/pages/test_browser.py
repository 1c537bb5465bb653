"""The pages in a real browser, against the real web server."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from approvals.models import Attempt, Decision, Verdict
from runs.ledger import load
from runs.machine.state import EffectStatus
from tests.fixtures.processes import Web
from tests.outside import World
from tests.pages.test_run import stuck
from tests.people import PASSWORD, House

pytestmark = pytest.mark.browser
POLLED = "#change-banner, #live-status, #inbox-count, #mine-count, [id^=count-]"
CONTROLS = "input, textarea, select, button[type=submit], details[open]"


def sign_in(page: Page, name: str) -> Page:
    page.goto("/login/")
    page.fill("[name=username]", name)
    page.fill("[name=password]", PASSWORD)
    page.click("main button[type=submit]")
    page.wait_for_url("**/inbox/**")
    return page


def fill_in(page: Page, reason: str) -> None:
    page.check("[name=decision][value=approve]")
    page.fill("[name=reason]", reason)
    page.fill("[name=phrase]", "250.00 2000")


def test_without_javascript_the_whole_way_works(
    house: House, world: World, web: Web, browser: Browser
) -> None:
    waiting, doubtful = house.waiting(), stuck(house, world)
    context = browser.new_context(base_url=web.url, java_script_enabled=False)
    page = sign_in(context.new_page(), "approver")
    page.check(f"[data-run={waiting.pk}] [name=run]")
    page.click("[data-testid=bulk] >> text=Claim")
    expect(page.locator(f"[data-line={waiting.pk}]")).to_contain_text("You work on it now.")
    page.click("text=Back to the inbox")
    expect(page.locator(f"[data-run={waiting.pk}]")).to_contain_text("Working on it: you")
    page.fill("form.filter [name=q]", "2000")
    page.click("form.filter button[type=submit]")
    assert page.locator("[data-testid=row]").count() == 1
    page.click("[data-testid=row] >> text=Review plan v1")
    fill_in(page, "all is well")
    page.click("text=Record decision")
    expect(page.locator("[data-testid=result]")).to_contain_text("You approved plan v1.")

    page.locator("header form[action$='logout/'] button").click()
    sign_in(page, "operator")
    page.goto(f"/runs/{doubtful.pk}/")
    page.click("[data-testid=who-may-act] >> text=Reconcile E-1")
    page.check("[name=conclusion][value=still_unknown]")
    page.click("text=Record conclusion")
    expect(page.locator("[data-testid=result]")).to_contain_text("Nothing was recorded.")
    context.close()
    assert load(doubtful.pk).effects[1].status is EffectStatus.UNKNOWN
    assert Decision.objects.get().request.subject == f"{waiting.pk}:1"


def test_the_other_approver_was_first(house: House, world: World, open_page: Callable[[], Page]) -> None:
    run = house.waiting()
    page = sign_in(open_page(), "approver")
    page.goto(f"/runs/{run.pk}/plan/1/review/")
    fill_in(page, "the amount fits the order")
    house.decide(run, house.second, Verdict.REJECT, "amount above the cap")
    expect(page.locator("#change-banner")).to_contain_text("Second rejected plan v1", timeout=15_000)
    assert page.input_value("[name=reason]") == "the amount fits the order"

    with page.expect_response(lambda answer: answer.request.method == "POST") as posted:
        page.click("text=Approve plan v1")

    assert posted.value.status == 409
    panel = page.locator("[data-testid=conflict]")
    expect(panel).to_contain_text("Second")
    assert panel.locator("h2").evaluate("node => node === document.activeElement")
    assert page.input_value("[name=reason]") == "the amount fits the order"
    assert page.locator("[name=decision]:checked").count() == 0
    assert Attempt.objects.get().refusal == "conflict"
    assert world.calls == []


def test_a_double_click_decides_once_and_back_shows_no_form(
    house: House, open_page: Callable[[], Page]
) -> None:
    run = house.waiting()
    page = sign_in(open_page(), "approver")
    page.goto(f"/runs/{run.pk}/plan/1/review/")
    fill_in(page, "all is well")

    page.dblclick("text=Approve plan v1")

    expect(page.locator("[data-testid=result]")).to_contain_text("You approved plan v1.")
    assert Decision.objects.count() == 1
    page.go_back()
    expect(page.locator("[data-testid=decided]")).to_be_visible()
    assert page.locator("[data-testid=decision-form]").count() == 0


WATCH = f"""() => {{
  window.bad = [];
  const look = () => {{
    for (const target of document.querySelectorAll("{POLLED}"))
      if (target.querySelector("{CONTROLS}")) window.bad.push(target.outerHTML);
  }};
  new MutationObserver(look).observe(document, {{subtree: true, childList: true}});
  look();
}}"""


def test_no_live_part_ever_holds_a_control(house: House, world: World, open_page: Callable[[], Page]) -> None:
    run, doubtful = house.waiting(), stuck(house, world)
    page = sign_in(open_page(), "operator")
    for number, url in enumerate(
        (
            "/inbox/?view=all",
            f"/runs/{run.pk}/",
            f"/runs/{doubtful.pk}/effects/1/reconcile/",
            f"/runs/{run.pk}/stop/",
        )
    ):
        page.goto(url)
        page.evaluate(WATCH)
        with page.expect_response(lambda answer: "notices" in answer.url):
            house.start(str(number + 500))
        page.wait_for_function("document.querySelector('#change-banner').textContent.trim() !== ''")
        assert page.evaluate("window.bad") == []


def test_the_next_safe_action_is_on_the_first_screen(
    house: House, world: World, open_page: Callable[[], Page]
) -> None:
    run = stuck(house, world)
    page = sign_in(open_page(), "operator")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"/runs/{run.pk}/")

    box = page.locator("[data-testid=next-safe-action]").bounding_box()

    assert box is not None and box["y"] + box["height"] <= 800
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
