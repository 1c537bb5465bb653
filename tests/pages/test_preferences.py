"""How pages are shown to a person: kept with the person, the same wherever they sign in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import translation
from playwright.sync_api import Page, expect
from pytest_django import Settings

from accounts.models import PeopleAction, User
from accounts.people_log import keep_change
from runs.clock import database_now
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, read
from tests.pages.test_browser import sign_in as sign_in_by_form
from tests.people import House


@pytest.fixture
def chinese(settings: Settings, tmp_path: Path) -> None:
    """Simplified Chinese is offered, with a catalogue of a few words."""
    catalog = Catalog(locale="zh_Hans_CN")
    catalog.add("Inbox", "收件箱")
    catalog.add("Settings", "设置")
    catalog.add("saved a view for the organisation", "为组织保存了视图")
    path = tmp_path / "zh_Hans" / "LC_MESSAGES" / "django.mo"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        write_mo(file, catalog)
    settings.LOCALE_PATHS = [tmp_path]
    settings.LANGUAGES = [("en", "English"), ("zh-hans", "Simplified Chinese")]


def settings_of(client: Client, **changed: str) -> Node:
    """The settings after they were saved with these values."""
    form = read(client.get("/settings/")).one("main").all("form")[0]
    chosen = {
        field.attrs["name"]: option.attrs.get("value", option.text)
        for field in form.all("select")
        for option in field.all("option")
        if "selected" in option.attrs
    }
    return read(client.post("/settings/", {**form.sends(), **chosen, **changed}, follow=True))


def language(page: Node) -> str:
    return page.one("html").attrs["lang"]


def test_where_there_is_one_language_none_is_offered(
    house: House, sign_in: SignIn, settings: Settings
) -> None:
    settings.LANGUAGES = [("en", "English")]
    page = read(sign_in(house.viewer).get("/settings/"))
    assert page.all(data_testid="languages") == [] and page.all("select", name="language") == []
    assert page.all("select", name="zone")


def test_the_switch_of_a_page_keeps_its_address_and_is_kept_with_the_person(
    house: House, sign_in: SignIn, chinese: None
) -> None:
    client, address = sign_in(house.viewer), "/inbox/?view=any&risk=low&q=order+7%26x"
    form = read(client.get(address)).part("languages")
    button = form.one("button")
    assert (button.attrs["lang"], button.text) == ("zh-hans", "简体中文")

    answer = client.post(form.attrs["action"], {**form.sends(), "language": "zh-hans"})

    assert answer["Location"] == address
    page = read(client.get(address))
    assert (language(page), page.one("h1").text) == ("zh-hans", "All runs")
    assert page.one("nav", aria_label="Main").all("a")[0].text.startswith("收件箱")
    assert page.one("input", name="q", aria_describedby="hint-q").attrs["value"] == "order 7&x"
    elsewhere = sign_in(house.viewer).get(address, headers={"Accept-Language": "en"})
    assert language(read(elsewhere)) == elsewhere["Content-Language"] == "zh-hans"
    assert language(read(sign_in(house.operator).get(address))) == "en"


def test_who_is_not_signed_in_follows_the_cookie_then_the_browser(house: House, chinese: None) -> None:
    client = Client()
    assert language(read(client.get("/login/", headers={"Accept-Language": "zh-CN"}))) == "zh-hans"
    form = read(client.get("/login/?next=/audit/")).part("languages")
    answer = client.post(form.attrs["action"], {**form.sends(), "language": "zh-hans"})
    assert answer["Location"] == "/login/?next=/audit/"
    assert language(read(client.get("/login/", headers={"Accept-Language": "en"}))) == "zh-hans"
    client.cookies["theme"] = "dark"
    assert read(client.get("/login/")).one("html").attrs["data-theme"] == "dark"


def test_the_way_back_leads_nowhere_else_and_unknown_languages_change_nothing(
    house: House, sign_in: SignIn, chinese: None
) -> None:
    client = sign_in(house.viewer)
    sent = {"language": "zh-hans", "next": "https://example.org/"}
    assert client.post("/language/", sent)["Location"] == "/"
    client.post("/language/", {"language": "xx<script>", "next": "/"})
    assert User.objects.get(pk=house.viewer.pk).language == "zh-hans"
    assert client.get("/language/").status_code == 405


def test_the_settings_keep_all_of_it(house: House, sign_in: SignIn, chinese: None) -> None:
    client = sign_in(house.viewer)

    page = settings_of(client, language="zh-hans", theme="dark", density="compact")

    html = page.one("html").attrs
    assert (html["lang"], html["data-theme"], html["data-density"]) == ("zh-hans", "dark", "compact")
    assert page.one("h1").text == "设置"
    client.post("/logout/")
    signed_out = read(client.get("/login/")).one("html").attrs
    assert (signed_out["lang"], signed_out["data-theme"]) == ("zh-hans", "dark")


def test_an_export_is_in_the_language_of_its_person_to_the_last_line(
    house: House, sign_in: SignIn, chinese: None
) -> None:
    User.objects.filter(pk=house.viewer.pk).update(language="zh-hans")
    now = database_now()
    keep_change(PeopleAction.VIEW_SHARED, actor=house.viewer, now=now, tenant=house.tenant, name="x")

    answer: Any = sign_in(house.viewer).get("/audit/export.jsonl")

    with translation.override("en"):
        lines = [json.loads(line) for line in b"".join(answer).splitlines()]
    assert lines[1]["did"] == "为组织保存了视图"


@pytest.mark.parametrize("field", ["language", "theme", "density"])
def test_what_is_not_offered_is_refused_and_nothing_is_lost(
    house: House, sign_in: SignIn, chinese: None, field: str
) -> None:
    client = sign_in(house.viewer)
    form = read(client.get("/settings/")).one("main").all("form")[0]
    sent = {**form.sends(), "zone": "UTC", "language": "", "theme": "dark", "density": "compact"}

    answer = client.post("/settings/", {**sent, "display_name": "New name", field: "<b>no</b>"})

    assert answer.status_code == 422
    page = read(answer)
    assert page.one("input", name="display_name").attrs["value"] == "New name"
    assert page.one(id=f"error-{field}").text == "Choose one of the list."
    kept = User.objects.get(pk=house.viewer.pk)
    assert (kept.display_name, kept.theme, kept.density) == ("Viewer", "system", "comfortable")


def test_the_database_takes_no_other_look(house: House) -> None:
    for wrong in ({"theme": "pink"}, {"density": "none"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            User.objects.filter(pk=house.viewer.pk).update(**wrong)


@pytest.mark.browser
def test_the_theme_of_the_header_is_kept_and_rows_of_a_compact_table_are_lower(
    house: House, open_page: Callable[[], Page]
) -> None:
    house.waiting()
    page = sign_in_by_form(open_page(), "viewer")
    cell = page.locator("[data-testid=row] td").first
    assert cell.evaluate("cell => getComputedStyle(cell).paddingTop") == "9px"
    with page.expect_response(lambda answer: answer.url.endswith("/settings/theme/")) as kept:
        page.select_option("#theme", "dark")
    assert kept.value.status == 204
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    User.objects.filter(username="viewer").update(density="compact")

    other = sign_in_by_form(open_page(), "viewer")

    expect(other.locator("html")).to_have_attribute("data-theme", "dark")
    assert other.input_value("#theme") == "dark"
    cell = other.locator("[data-testid=row] td").first
    assert cell.evaluate("cell => getComputedStyle(cell).paddingTop") == "5px"
