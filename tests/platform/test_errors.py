"""Error pages: the right status, an incident id that the log has too, and nothing of what went wrong inside."""

from __future__ import annotations

import json
import logging
import re

import pytest
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import path
from pytest_django.fixtures import Settings

from console import errors, urls
from console.health import broker
from tests.plugin import TestServers


def break_down(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("the secret word is swordfish")


def refuse(request: HttpRequest) -> HttpResponse:
    raise PermissionDenied("Only approvers may decide.")


urlpatterns = [*urls.urlpatterns, path("break", break_down), path("refuse", refuse)]
handler400, handler403 = urls.handler400, urls.handler403
handler404, handler500 = urls.handler404, urls.handler500


@pytest.fixture
def client(settings: Settings) -> Client:
    settings.ROOT_URLCONF = __name__
    return Client(raise_request_exception=False)


@pytest.mark.parametrize(
    ("method", "address", "status", "sentence"),
    [
        ("get", "/no/such/page", 404, "No page has this address"),
        ("get", "/runs/run_unknown99/nowhere", 404, "There is no run with the id"),
        ("get", "/refuse", 403, "Only approvers may decide."),
        ("get", "/break", 500, "Nothing was recorded. Try again."),
        ("post", "/break", 500, "We do not know whether your last action was recorded."),
    ],
)
def test_the_page_says_what_is_known(
    db: None, client: Client, method: str, address: str, status: int, sentence: str
) -> None:
    response = getattr(client, method)(address)
    page = " ".join(response.content.decode().split())
    assert response.status_code == status
    assert sentence in page
    assert "swordfish" not in page
    assert response.headers["X-Request-Id"][:6] in page


def test_whoever_is_not_signed_in_is_shown_no_way_but_to_sign_in(client: Client) -> None:
    """Also where too many sign-ins were refused, or another service knows nobody here: the same frame."""
    page = client.get("/no/such/page").content.decode()
    assert "<nav" not in page and 'class="bare"' in page
    assert "Sign in</a>" in page and "Go to the inbox" not in page


@pytest.mark.parametrize(
    ("asked", "given", "says"),
    [("zh-hans", "zh-hans", "登录"), ("zh-CN", "zh-hans", "登录"), ("fr", "en", "Sign in")],
)
def test_a_page_is_in_one_language(db: None, client: Client, asked: str, given: str, says: str) -> None:
    """Else Django's own sentences would be in a language that ours are not in."""
    response = client.get("/login/", headers={"Accept-Language": asked})
    assert response.headers["Content-Language"] == given
    assert f'<html lang="{given}"' in response.content.decode() and says in response.content.decode()


def test_a_failure_needs_no_database(client: Client) -> None:
    """The fixture `db` is not asked for, so any query would be refused."""
    assert client.get("/break").status_code == 500


def test_a_form_of_an_earlier_sign_in_is_refused_in_words(db: None) -> None:
    response = Client(enforce_csrf_checks=True).post("/no/such/page")
    assert response.status_code in {403, 404}
    refused = errors.csrf_failure(RequestFactory().post("/"), reason="CSRF cookie not set.")
    assert refused.status_code == 403
    assert "This form belongs to an earlier sign-in." in refused.content.decode()


def test_every_answer_forbids_inline_code_and_frames(db: None, client: Client) -> None:
    policy = client.get("/healthz").headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_a_sent_request_id_is_not_taken_over(client: Client) -> None:
    response = client.get("/healthz", headers={"X-Request-Id": "chosen-by-a-stranger"})
    assert re.fullmatch(r"[0-9a-f]{16}", response.headers["X-Request-Id"])


def test_a_log_line_has_the_incident_and_no_values() -> None:
    formatter = logging.Formatter()
    for handler in logging.getLogger().handlers:
        formatter = handler.formatter or formatter
    made = settings.LOGGING["formatters"]["json"]
    line = made["()"](**{key: value for key, value in made.items() if key != "()"})
    try:
        raise ValueError("duplicate key\nDETAIL: Key (email)=(kim@example.org) already exists.")
    except ValueError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, "f", 1, "Task %s\nargs: secret", ("t",), (type(error), error, None)
        )
    written = json.loads(line.format(record))
    assert written["event"] == "Task t"
    assert written["error"] == "ValueError: duplicate key"
    assert "kim@example.org" not in json.dumps(written)


def test_readyz_names_the_part_that_is_not_well(db: None, client: Client, test_servers: TestServers) -> None:
    """Nothing has swept in a fresh test database."""
    response = client.get("/readyz")
    parts = response.json()["parts"]
    assert response.status_code == 503
    assert [name for name, part in parts.items() if not part["ok"]] == ["sweep"]
    assert broker() == {"server": test_servers.broker.name}
