"""The page templates in a real browser: readable by all, in both themes, narrow, and safe with hostile text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.conf import settings
from django.contrib.staticfiles import finders
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.urls import path
from django.utils import translation
from django.utils.csp import build_policy
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page
from pytest_django import Settings

from accounts.models import User
from console.templatetags import labels
from runs.machine.state import EffectStatus, RequestStatus, State
from tests.pages.examples import HOSTILE, PAGES, REVIEW, RUN_PAGE

urlpatterns = [
    path(address, lambda _request: HttpResponse(), name=name)
    for name, address in (
        ("inbox", ""),
        ("start", "start/"),
        ("audit", "audit/"),
        ("logout", "logout/"),
        ("settings", "settings/"),
    )
]

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
#: Where the pages have axe from: a browser need not read the same half megabyte again for each of them.
AXE = "/static/axe.js"
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
LIN = User(username="lin", display_name="Lin")


def rendered(name: str) -> str:
    template, context = PAGES[name]
    request = RequestFactory().get("/")
    # The context processor would ask the session, which these pages do not need.
    request.user = SimpleNamespace(is_authenticated=False)  # type: ignore[assignment]
    who = {} if name == "login" else {"user": LIN}
    return render_to_string(template, {**who, **context}, request)


def barriers(page: Page, **options: Any) -> list[tuple[str, list[str]]]:
    """What axe finds: rule and the elements that break it."""
    if page.evaluate("typeof axe") == "undefined":
        page.add_script_tag(url=AXE)
    found = page.evaluate("options => axe.run(options)", {**options, "resultTypes": ["violations"]})
    return [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found["violations"]]


class Elements(HTMLParser):
    """The elements of a page, and what the tests ask of them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.ids = [str(a["id"]) for _tag, a in self.found if "id" in a]
        links = [a.get("href") or "" for tag, a in self.found if tag == "a"]
        self.anchors = {link[1:] for link in links if link.startswith("#") and len(link) > 1}
        self.inline = [(tag, a) for tag, a in self.found if _inline(tag, a)]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def _inline(tag: str, attributes: dict[str, str | None]) -> bool:
    """Whether the content security policy would refuse it."""
    handlers = [name for name in attributes if name.startswith(("on", "hx-on")) or name == "style"]
    return bool(handlers) or tag == "style" or (tag == "script" and "src" not in attributes)


def complaint(said: ConsoleMessage) -> bool:
    """Whether the browser complains of the page; not where a test lets the poll fail."""
    return said.type == "error" and "503" not in said.text


class Server(ThreadingHTTPServer):
    """Serves the example pages by their names, the static files, and the poll as `notices` says."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.notices: tuple[int, str] = (204, "")
        self.posts: list[str] = []
        self.language = "en"

    def answer(self, address: str) -> tuple[int, str, bytes]:
        """Status, content type and body."""
        if address == AXE:
            return 200, TYPES[".js"], AXE_SCRIPT.encode()
        if address.startswith("/static/"):
            found = Path(str(finders.find(address.removeprefix("/static/"))))
            return 200, TYPES[found.suffix], found.read_bytes()
        if address == "/inbox/notices/":
            status, body = self.notices
            return status, "text/html", body.encode()
        if address == "/":
            return 200, "text/html", b""
        with translation.override(self.language):
            return 200, "text/html", rendered(address.strip("/")).encode()


class Answer(BaseHTTPRequestHandler):
    """One request of the browser."""

    server: Server

    def do_GET(self) -> None:
        self._send(*self.server.answer(self.path.split("?")[0]))

    def do_POST(self) -> None:
        self.server.posts.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self._send(204, "text/html", b"")

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        if status == 302:
            self.send_header("Location", body.decode())
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if self.path.startswith("/static/"):
            self.send_header("Cache-Control", "max-age=3600")
        self.send_header("Content-Security-Policy", build_policy(settings.SECURE_CSP))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the tests look at what the browser shows."""


@pytest.fixture(autouse=True)
def addresses(settings: Settings) -> None:
    """The addresses that the shell links to, whether or not their pages are there yet."""
    settings.ROOT_URLCONF = __name__


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    started = Server()
    Thread(target=started.serve_forever, args=(0.05,), daemon=True).start()
    yield started
    started.shutdown()
    started.server_close()


@pytest.fixture
def server(served: Server) -> Server:
    """With nothing to tell, and nothing posted."""
    served.notices, served.posts, served.language = (204, ""), [], "en"
    return served


class Opened:
    """Opens pages, and hears what the browser says of them."""

    def __init__(self, browser: Browser, server: Server) -> None:
        self.browser, self.server = browser, server
        self.contexts: list[BrowserContext] = []
        self.errors: list[str] = []

    def page(self, **options: Any) -> Page:
        """An empty one, of a context of its own."""
        context = self.browser.new_context(base_url=self.server.url, **options)
        context.set_default_timeout(5_000)
        self.contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if complaint(said) else None)
        return page

    def close(self) -> None:
        while self.contexts:
            self.contexts.pop().close()


@pytest.fixture
def opened(browser: Browser, server: Server) -> Iterator[Callable[..., Page]]:
    """Opens a page by its name in `examples.PAGES`; nothing may have complained by the end of the test."""
    pages = Opened(browser, server)

    def open_page(name: str, **options: Any) -> Page:
        page = pages.page(**options)
        page.goto(f"/{name}/")
        return page

    yield open_page
    pages.close()
    assert pages.errors == []


@pytest.fixture(scope="module")
def one_by_one(browser: Browser, served: Server) -> Iterator[tuple[Opened, Page]]:
    """One page for all that is only looked at."""
    pages = Opened(browser, served)
    yield pages, pages.page()
    pages.close()


@pytest.fixture
def looked_at(one_by_one: tuple[Opened, Page], server: Server) -> Iterator[Page]:
    """That page, bright and wide, with nothing remembered of the one before."""
    pages, page = one_by_one
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 720})
    pages.errors.clear()
    yield page
    page.evaluate("sessionStorage.clear(), localStorage.clear()")
    assert pages.errors == []


@pytest.mark.browser
@pytest.mark.parametrize("name", PAGES)
def test_no_page_has_a_barrier_in_either_theme_or_on_a_narrow_screen(looked_at: Page, name: str) -> None:
    page = looked_at
    page.goto(f"/{name}/")

    assert page.evaluate("document.scrollingElement.scrollWidth") == 1280
    assert barriers(page, runOnly=WCAG) == []
    page.emulate_media(color_scheme="dark")
    assert barriers(page, runOnly=["color-contrast"]) == []
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.scrollingElement.scrollWidth") == 320
    assert barriers(page, runOnly=["target-size", "scrollable-region-focusable"]) == []


@pytest.mark.browser
@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_the_screen_in_chinese(looked_at: Page, server: Server, name: str) -> None:
    server.language = "zh-hans"
    looked_at.goto(f"/{name}/")

    assert looked_at.evaluate("document.documentElement.lang") == "zh-hans"
    assert looked_at.evaluate("document.scrollingElement.scrollWidth") == 1280
    looked_at.set_viewport_size({"width": 320, "height": 640})
    assert looked_at.evaluate("document.scrollingElement.scrollWidth") == 320


@pytest.mark.parametrize("name", PAGES)
def test_each_page_has_one_heading_one_main_working_anchors_and_nothing_inline(name: str) -> None:
    page = Elements(rendered(name))

    assert [tag for tag, _attributes in page.found if tag in ("h1", "main")] in (
        ["main", "h1"],
        ["h1", "main"],
    )
    assert page.inline == []
    assert [a for _tag, a in page.found if any("<" in name or '"' in name for name in a)] == []
    assert len(page.ids) == len(set(page.ids))
    assert page.anchors <= set(page.ids)


@pytest.mark.browser
def test_the_next_safe_action_is_whole_on_the_first_screen(opened: Callable[..., Page]) -> None:
    page = opened("run", viewport={"width": 1280, "height": 800})

    box = page.get_by_test_id("next-safe-action").bounding_box()

    assert box and box["y"] + box["height"] <= 800
    assert page.get_by_test_id("handoff").locator("> li").count() == 7


@pytest.mark.browser
def test_an_effect_in_doubt_is_called_unknown_and_nothing_else(opened: Callable[..., Page]) -> None:
    row = opened("run").locator('[data-effect="E-7"]').inner_text()

    assert all(words in row for words in ("07:01:52", "not recorded", "missing", "Unknown outcome"))
    assert not any(word in row for word in ("Failed", "Success", "Done"))


@pytest.mark.browser
def test_all_that_is_executed_can_be_read_and_nothing_is_cut(opened: Callable[..., Page]) -> None:
    page = opened("review")
    listed = page.get_by_test_id("exec-list")

    text = listed.inner_text()
    assert "321588685835436831" in text
    assert "[U+202E]" in text and "[U+200B]" in text
    assert "<img src=x onerror=alert(1)>" in text
    assert listed.locator("details, img").count() == 0
    assert (
        listed.evaluate("""list => [...list.querySelectorAll('*')].filter(e => {
        const s = getComputedStyle(e);
        return s.textOverflow === 'ellipsis' || s.webkitLineClamp !== 'none'; }).length""")
        == 0
    )
    assert page.evaluate("""() => !!(document.querySelector('[data-testid=exec-list]').compareDocumentPosition(
        document.querySelector('[data-testid=agent-claim]')) & Node.DOCUMENT_POSITION_FOLLOWING)""")
    assert page.get_by_test_id("agent-claim").locator("a, img, svg, form, button").count() == 0


@pytest.mark.browser
def test_nothing_is_chosen_for_the_person_and_the_button_names_the_choice(
    opened: Callable[..., Page],
) -> None:
    page = opened("review")
    button = page.get_by_test_id("decision-form").get_by_role("button")

    assert page.locator("input[type=radio]:checked").count() == 0
    assert button.inner_text() == "Record decision"
    page.get_by_label("Reject. The run goes").check()
    assert button.inner_text() == "Reject plan v5"


@pytest.mark.browser
@pytest.mark.parametrize(
    ("name", "words"), [("review-wrong", "3 answers"), ("review-conflict", "Not recorded.")]
)
def test_what_went_wrong_has_the_focus(opened: Callable[..., Page], name: str, words: str) -> None:
    page = opened(name)

    assert words in page.locator(":focus").inner_text()


@pytest.mark.browser
def test_a_conflict_keeps_what_was_typed_and_offers_no_commit(opened: Callable[..., Page]) -> None:
    page = opened("review-conflict")

    assert page.get_by_label("Reason").input_value() == "The amount fits the order."
    assert page.get_by_test_id("decision-form").locator("[type=submit]").count() == 0


@pytest.mark.browser
def test_a_form_is_sent_once(opened: Callable[..., Page], server: Server) -> None:
    page = opened("review")
    page.get_by_label("Reject. The run goes").check()
    button = page.get_by_test_id("decision-form").locator("[type=submit]")

    button.evaluate("button => { button.click(); button.click(); button.click(); }")
    page.wait_for_function("document.querySelector('[data-follows]').textContent === 'Recording…'")

    assert len(server.posts) == 1
    assert button.get_attribute("aria-disabled") == "true"


@pytest.mark.browser
def test_a_reason_survives_leaving_the_page_and_a_decision_does_not(opened: Callable[..., Page]) -> None:
    page = opened("review")
    page.get_by_label("Reason").fill("The amount is above the cap.")
    page.get_by_label("Type the amount").fill("1240.00 Acme GmbH")
    page.get_by_label("Reject. The run goes").check()

    page.goto("/login/")
    page.goto("/review/")

    assert page.get_by_label("Reason").input_value() == "The amount is above the cap."
    assert page.get_by_label("Type the amount").input_value() == ""
    assert page.locator("input[type=radio]:checked").count() == 0


@pytest.mark.browser
def test_news_comes_by_the_poll_and_touches_nothing_that_is_typed(
    opened: Callable[..., Page], server: Server
) -> None:
    news = {"text": "Version 49 is available: Mia rejected plan v5.", "url": "/run/"}
    page = opened("review")
    reason = page.get_by_label("Reason")
    reason.fill("half a sen")

    context = {"news": news, "inbox_count": 13, "counts": []}
    server.notices = (200, render_to_string("parts/notices.html", context))
    page.get_by_test_id("change-banner").get_by_text("Mia rejected plan v5").wait_for()

    assert page.locator("#inbox-count").inner_text() == "13"
    assert reason.input_value() == "half a sen"
    assert reason.evaluate("field => field === document.activeElement")
    assert (
        page.locator("#change-banner").locator("input, textarea, select, [type=submit], details").count() == 0
    )


@pytest.mark.browser
def test_the_sign_in_page_is_never_taken_for_news(opened: Callable[..., Page], server: Server) -> None:
    page = opened("run")
    server.notices = (302, "/login/")

    for _question in range(2):
        with page.expect_response("**/login/"):
            pass

    assert page.locator("form.signin").count() == 0
    assert "Up to date with version 43" in page.get_by_test_id("change-banner").inner_text()


@pytest.mark.browser
def test_a_page_that_hears_nothing_says_lost_and_stops_counting(
    opened: Callable[..., Page], server: Server
) -> None:
    page = opened("review")
    page.clock.install()
    page.goto("/review/")
    server.notices = (503, "")
    live = page.get_by_test_id("live-status")

    for _step in range(40):
        page.clock.run_for(1000)
    live.get_by_text("Data may be old.").wait_for()
    left = page.locator(".countdown").inner_text()
    page.clock.run_for(5000)

    assert page.locator(".countdown").inner_text() == left
    assert page.get_by_text("We cannot check for changes right now.").is_visible()
    server.notices = (204, "")
    page.clock.run_for(5000)
    live.get_by_text("Live").wait_for()


@pytest.mark.browser
def test_at_expiry_the_page_says_that_nothing_was_approved(opened: Callable[..., Page]) -> None:
    page = opened("review")
    page.clock.install()
    page.goto("/review/")
    page.get_by_label("Reason").fill("The amount is above the cap.")
    assert page.get_by_test_id("expiring").is_hidden()

    page.clock.fast_forward("09:00")

    assert "Nothing was approved." in page.get_by_test_id("expiring").inner_text()
    assert page.get_by_label("Reason").input_value() == "The amount is above the cap."


@pytest.mark.browser
def test_without_script_every_control_that_shows_does_something(opened: Callable[..., Page]) -> None:
    page = opened("review", java_script_enabled=False)

    assert page.locator(".copy").first.is_hidden()
    assert page.locator("#theme").is_hidden()
    assert page.get_by_role("button", name="Record decision").is_visible()


@pytest.mark.browser
def test_the_handoff_prints_without_navigation_and_with_whole_digests(opened: Callable[..., Page]) -> None:
    page = opened("handoff", color_scheme="dark")
    page.emulate_media(media="print")

    assert page.get_by_role("navigation").count() == 0
    assert page.get_by_role("button").count() == 0
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize(
    ("kind", "states"), [("run", State), ("effect", EffectStatus), ("approval", RequestStatus)]
)
def test_each_state_has_its_own_words_and_glyph(kind: str, states: type[State]) -> None:
    table = labels.KINDS[kind]

    assert {str(state) for state in states} <= set(table)
    loud = [entry.glyph for entry in table.values() if entry.loud]
    assert len(loud) == len(set(loud))
    assert len({str(entry.text) for entry in table.values()}) == len(table)


def test_text_of_others_is_shown_and_never_run() -> None:
    run_page = rendered("run")

    assert "<img" not in run_page
    assert "\u202e" not in run_page and "\u200b" not in run_page
    assert "[U+202E]" in run_page
    assert HOSTILE not in run_page
    assert all("safe" not in text.read_text().split("|") for text in Path("templates").rglob("*.html"))


def test_a_page_says_error_first_in_its_title() -> None:
    assert "<title>Error: Review plan v5" in rendered("review-wrong")


def test_the_decision_form_carries_what_it_was_made_from() -> None:
    page = rendered("review")

    for name, value in (
        ("digest", REVIEW["plan"]["digest"]),
        ("plan_version", 5),
        ("run_seq", 43),
        ("submission", "sub_1"),
    ):
        assert f'name="{name}" value="{value}"' in page


def test_a_run_that_has_nothing_says_so_in_each_section() -> None:
    page = rendered("run-new")

    assert len(RUN_PAGE["handoff"]) == 7
    for words in (
        "No plan was proposed yet",
        "No effect was ever planned",
        "read nothing yet",
        "No approval was asked for",
    ):
        assert words in page


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_help_about_keys_can_be_read_by_all(opened: Callable[..., Page], scheme: str) -> None:
    page = opened("inbox", color_scheme=scheme, viewport={"width": 320, "height": 640})

    page.keyboard.press("?")

    assert page.get_by_role("dialog", name="Keys of this page").is_visible()
    assert barriers(page, runOnly=WCAG) == []
    assert page.evaluate("document.scrollingElement.scrollWidth") == 320
