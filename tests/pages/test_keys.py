"""Single keys: each goes where it says, none records anything, and they can be switched off."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from runs.pages.shortcuts import addresses
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.pages.test_browser import sign_in as sign_in_by_form
from tests.pages.test_run import stuck
from tests.people import House

FOCUSED_ROW = "document.activeElement.closest('tr[data-run]')?.dataset.run"
FOCUSED_BOX = "document.activeElement.closest('tr[data-run]').querySelector('[name=run]').checked"


def test_of_several_unknown_effects_the_first_that_cannot_be_undone_weighs_most() -> None:
    found = addresses("run_X", plan=3, unknown=[(1, True), (4, False), (2, False)])
    assert found == {"review": "/runs/run_X/plan/3/review/", "reconcile": "/runs/run_X/effects/2/reconcile/"}
    assert addresses("run_X", plan=None, unknown=[]) == {}


def test_the_keys_are_explained_without_a_script_and_gone_where_switched_off(
    house: House, sign_in: SignIn
) -> None:
    client = sign_in(house.viewer)
    page = read(client.get("/inbox/"))
    (link,) = [a for a in page.one("header").all("a") if a.text == "Keyboard"]
    assert link.attrs["href"] == "/settings/#keyboard"
    settings = read(client.get("/settings/"))
    assert "the next and the previous run of the list" in settings.one(id="keyboard").text
    form = settings.one("main").all("form")[0].sends()
    assert form.pop("shortcuts") == "1"

    switched_off = read(client.post("/settings/", {**form, "zone": "UTC"}, follow=True))

    assert switched_off.all(id="keys") == []
    assert not any("keys.js" in script.attrs.get("src", "") for script in switched_off.all("script"))
    assert "You switched single keys off." in switched_off.one(id="keyboard").text


@pytest.mark.browser
def test_each_key_does_what_it_says_and_none_sends_a_form(
    house: House, world: World, open_page: Callable[[], Page]
) -> None:
    doubtful, waiting = stuck(house, world), house.waiting()
    page = sign_in_by_form(open_page(), "approver")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method != "GET" else None)
    said = page.locator("#announce")

    page.goto("/inbox/?view=any")
    page.keyboard.press("a")
    expect(said).to_have_text("Go to a run first, with j or k.")
    page.keyboard.press("j")
    assert page.evaluate(FOCUSED_ROW) == waiting.pk
    page.keyboard.press("r")
    expect(said).to_have_text("No effect to reconcile.")
    expect(page.locator("#key-note")).to_have_text("No effect to reconcile.")
    page.keyboard.press("k")
    expect(said).to_have_text("This is the first run of the list.")
    page.keyboard.press("x")
    assert page.evaluate(FOCUSED_BOX) is True
    page.keyboard.press("x")
    assert page.evaluate(FOCUSED_BOX) is False
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(said).to_have_text("This is the last run of the list.")
    assert page.evaluate(FOCUSED_ROW) == doubtful.pk
    page.keyboard.press("Control+k")
    page.keyboard.press("Alt+k")
    assert page.evaluate(FOCUSED_ROW) == doubtful.pk

    page.keyboard.press("/")
    page.keyboard.type("jkxaru[]/?gi")
    assert page.locator(".top [name=q]").input_value() == "jkxaru[]/?gi"
    page.locator("select[name=risk]").focus()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.name") == "risk"

    page.locator(f"[data-run={doubtful.pk}] th a").focus()
    page.keyboard.press("?")
    dialog = page.locator("dialog#keys")
    assert dialog.locator("kbd:visible").all_inner_texts() == [*list("jk"), "Enter", *list("xar/gi?")]
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert page.evaluate(FOCUSED_ROW) == doubtful.pk

    page.keyboard.press("r")
    page.wait_for_url(f"**/runs/{doubtful.pk}/effects/1/reconcile/")
    page.keyboard.press("[")
    page.wait_for_url(f"**/runs/{waiting.pk}/")
    page.keyboard.press("[")
    expect(said).to_have_text("This is the first run of the list.")
    page.keyboard.press("]")
    page.wait_for_url(f"**/runs/{doubtful.pk}/")
    page.keyboard.press("a")
    expect(said).to_have_text("No plan to review.")
    page.keyboard.press("u")
    page.wait_for_url("**/inbox/?view=any")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{waiting.pk}/")
    page.keyboard.press("a")
    page.wait_for_url("**/plan/1/review/")
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_url("**/inbox/")
    page.click("text=Keyboard")
    expect(dialog).to_be_visible()
    assert sent == []

    User.objects.filter(username="approver").update(shortcuts=False)
    page.goto("/inbox/?view=any")
    for key in ("j", "x", "/", "?"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement === document.body")
    assert dialog.count() == 0
    page.click("text=Keyboard")
    page.wait_for_url("**/settings/#keyboard")
