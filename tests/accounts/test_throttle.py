"""Refused sign-ins are counted by name and by address, in the database."""

from __future__ import annotations

from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.db.models import F
from django.test import Client
from pytest_django import Settings

from accounts.models import SignIn, User

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


@pytest.fixture
def person() -> User:
    return User.objects.create_user(username="kim", password=PASSWORD)


def attempt(name: str, password: str = "wrong", *, address: str = "192.0.2.1", **more: str) -> int:
    """The status of one attempt, each by another client: nothing but the database connects them."""
    client = Client(REMOTE_ADDR=address, **more)  # type: ignore[arg-type]
    return client.post("/login/", {"username": name, "password": password}).status_code


def test_a_name_waits_after_five_failures_from_wherever_and_whether_or_not_anybody_has_it(
    person: User,
) -> None:
    for name in ("kim", "nobody"):
        statuses = [attempt(name, address=f"192.0.2.{n}") for n in range(1, 8)]
        assert statuses == [200, 200, 200, 200, 429, 429, 429], name
    assert attempt("kim", PASSWORD, address="192.0.2.99") == 429


def test_the_page_says_until_when_and_is_the_same_for_both_names(person: User) -> None:
    pages = []
    for name in ("kim", "nobody"):
        for _ in range(5):
            answer = Client().post("/login/", {"username": name, "password": "wrong"})
        assert answer.status_code == 429 and 0 < int(answer["Retry-After"]) <= 16 * 60
        pages.append(answer.content.decode())
    assert all("Nothing was recorded. Try again after" in page for page in pages)
    assert "kim" not in pages[0] and "nobody" not in pages[1]


def test_after_the_time_the_name_may_sign_in_again(person: User) -> None:
    for _ in range(5):
        attempt("kim")
    AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(minutes=16))
    assert attempt("kim", PASSWORD) == 302


def test_signing_in_forgets_ones_own_failures_there_and_nobody_elses(person: User) -> None:
    for _ in range(4):
        attempt("kim")
        attempt("lee")
    assert attempt("kim", PASSWORD) == 302
    assert [attempt("kim") for _ in range(4)] == [200] * 4
    assert attempt("lee") == 429


def test_one_name_does_not_shut_out_an_address_but_many_do(person: User, settings: Settings) -> None:
    settings.HANDOFF_SIGN_IN_FAILURES_OF_AN_ADDRESS = 8
    assert [attempt("nobody") for _ in range(20)].count(429) == 16
    assert attempt("kim", PASSWORD) == 302
    for n in range(3):
        attempt(f"name{n}")
    assert attempt("kim", PASSWORD) == 429
    assert attempt("kim", PASSWORD, address="192.0.2.2") == 302


def test_behind_a_proxy_only_what_the_proxy_adds_is_believed(person: User, settings: Settings) -> None:
    settings.HANDOFF_SIGN_IN_FAILURES_OF_AN_ADDRESS = 2
    settings.HANDOFF_BEHIND_PROXY = True
    for n in range(2):
        attempt(f"name{n}", HTTP_X_FORWARDED_FOR=f"203.0.113.{n}, 198.51.100.7")
    assert attempt("kim", PASSWORD, HTTP_X_FORWARDED_FOR="203.0.113.9, 198.51.100.7") == 429
    assert attempt("kim", PASSWORD, HTTP_X_FORWARDED_FOR="198.51.100.8") == 302
    settings.HANDOFF_BEHIND_PROXY = False
    assert attempt("kim", PASSWORD, HTTP_X_FORWARDED_FOR="198.51.100.7") == 302


def test_each_attempt_is_logged_and_a_name_that_nobody_has_is_not_kept(person: User) -> None:
    attempt("my password is hunter2")
    attempt("kim")
    attempt("kim", PASSWORD)
    logged = list(SignIn.objects.order_by("pk").values_list("person__username", "outcome", "ip"))
    assert logged == [
        (None, "wrong", "192.0.2.1"),
        ("kim", "wrong", "192.0.2.1"),
        ("kim", "signed_in", "192.0.2.1"),
    ]
