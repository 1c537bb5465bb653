"""Signing in and out."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import User

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


@pytest.fixture
def person() -> User:
    return User.objects.create_user(username="kim", password=PASSWORD)


def sign_in(client: Client, **other: str) -> int:
    answer = client.post("/login/", {"username": "kim", "password": PASSWORD, **other})
    return answer.status_code


def is_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_a_person_signs_in_for_eight_hours_with_a_cookie_no_script_can_read(
    client: Client, person: User
) -> None:
    assert sign_in(client) == 302 and is_in(client)
    cookie = client.cookies["handoff_session"]
    assert (cookie["max-age"], cookie["httponly"], cookie["samesite"]) == (8 * 60 * 60, True, "Lax")


@pytest.mark.parametrize("wrong", [{"password": "x"}, {"username": "nobody"}, {"username": "kim\x00"}])
def test_what_is_wrong_is_not_told(client: Client, person: User, wrong: dict[str, str]) -> None:
    assert sign_in(client, **wrong) == 200 and not is_in(client)


def test_who_is_not_active_cannot_sign_in_and_is_signed_out(client: Client, person: User) -> None:
    sign_in(client)
    User.objects.filter(pk=person.pk).update(is_active=False)
    assert client.get("/login/").status_code == 200
    assert sign_in(Client()) == 200 and not is_in(Client())


def test_sign_in_leads_to_no_other_site(client: Client, person: User) -> None:
    answer = client.post("/login/?next=https://evil.example/", {"username": "kim", "password": PASSWORD})
    assert answer.status_code == 302 and "evil" not in answer["Location"]


def test_signing_out_takes_a_post(client: Client, person: User) -> None:
    sign_in(client)
    assert client.get("/logout/").status_code == 405 and is_in(client)
    assert client.post("/logout/").status_code == 302 and not is_in(client)


def test_signing_in_needs_the_forms_token(person: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    assert sign_in(strict) == 403 and not is_in(strict)
