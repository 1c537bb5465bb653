"""Stepping through a log with the keys and the slider, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from runs.ledger import load
from tests.fixtures.processes import Web
from tests.outside import World
from tests.pages.test_browser import sign_in
from tests.people import House

pytestmark = pytest.mark.browser


def test_the_keys_step_while_the_stepper_or_the_slider_has_the_focus(
    house: House, world: World, web: Web, page: Page
) -> None:
    run = house.waiting()
    last = load(run.pk).seq
    sign_in(page, "viewer")
    page.goto(f"/runs/{run.pk}/")
    page.click("text=Replay")
    page.focus("#stepper [rel=prev]")

    for key, seq in (
        ("ArrowLeft", last - 1),
        ("ArrowLeft", last - 2),
        ("Home", 1),
        ("ArrowRight", 2),
        ("End", last),
    ):
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(rf"\?seq={seq}#stepper$"))

    page.focus("#slider")
    for key, seq in (("ArrowLeft", last - 1), ("ArrowLeft", last - 2), ("Home", 1), ("End", last)):
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(rf"\?seq={seq}#slider$"))
        expect(page.locator("#slider")).to_be_focused()
        expect(page.locator("[data-testid=slide] output")).to_have_text(str(seq))
    expect(page.locator("[data-testid=replay-check]")).to_contain_text("Recorded state = recomputed state")
