"""Signing in with another service lets in those who are here, and nobody else, however the service lies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import TOTP
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from pytest_django import Settings

from accounts.models import PeopleChange, SignIn, User
from tests.accounts.provider import CLIENT, SECRET, Provider, running
from tests.accounts.world import code

pytestmark = pytest.mark.django_db
FACTOR = "JBSWY3DPEHPK3PXP"
BEGIN, BACK = "/login/with/oidc/", "/login/with/oidc/back/"


@pytest.fixture
def person() -> User:
    return User.objects.create_user(username="kim", email="Kim@example.com", password="correct horse battery")


@pytest.fixture
def provider(settings: Settings) -> Iterator[Provider]:
    with running() as made:
        app = {
            "provider_id": "oidc", "name": "Example ID", "client_id": CLIENT, "secret": SECRET,
            "settings": {"server_url": made.issuer},
        }  # fmt: skip
        settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [app]}}
        yield made


def sign_in(client: Client, provider: Provider, query: str = "?next=/inbox/") -> Any:
    """The whole way: to the service, and back with what it gave."""
    begun = client.get(BEGIN + query)
    assert begun.status_code == 302, begun.content
    return client.get(f"{BACK}?{provider.authorize(begun['Location'])}")


def is_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_who_is_here_with_a_verified_address_gets_in_and_is_linked_from_then_on(
    person: User, provider: Provider
) -> None:
    client = Client()
    assert sign_in(client, provider)["Location"] == "/inbox/" and is_in(client)
    assert provider.asked["code_challenge_method"] == "S256"
    assert PeopleChange.objects.get(person=person).action == "linked"
    User.objects.filter(pk=person.pk).update(email="")
    provider.claims = {"email": None}
    again = Client()
    assert sign_in(again, provider).status_code == 302 and is_in(again)
    assert SignIn.objects.filter(person=person, method="Example ID", outcome="signed_in").count() == 2


def test_nobody_is_made(provider: Provider) -> None:
    client = Client()
    answer = sign_in(client, provider)
    assert answer.status_code == 403 and "nobody here" in answer.content.decode()
    assert not User.objects.exists() and not SocialAccount.objects.exists() and not is_in(client)
    assert SignIn.objects.get().outcome == "unknown"


LIES: dict[str, dict[str, Any]] = {
    "another nonce": {"claims": {"nonce": "n"}},
    "no nonce": {"claims": {"nonce": None}},
    "another issuer in the token": {"claims": {"iss": "https://evil.example"}},
    "another issuer in the document": {"lies": {"issuer": "https://evil.example"}},
    "another audience": {"claims": {"aud": "other"}},
    "another client": {"claims": {"azp": "other", "aud": [CLIENT, "other"]}},
    "expired": {"claims": {"exp": 1}},
    "no subject": {"claims": {"sub": ""}},
    "unsigned": {"algorithm": "none"},
    "signed with a secret": {"algorithm": "HS256"},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=list(LIES))
def test_a_lie_lets_nobody_in(person: User, provider: Provider, lie: dict[str, Any]) -> None:
    for name, value in lie.items():
        setattr(provider, name, value)
    client = Client()
    answer = sign_in(client, provider)
    assert answer.status_code == 400 and not is_in(client)
    assert "evil" not in answer.content.decode() and not SocialAccount.objects.exists()


def test_a_token_of_another_key_lets_nobody_in(person: User, provider: Provider) -> None:
    provider.signs_with = Provider().key
    client = Client()
    assert sign_in(client, provider).status_code == 400 and not is_in(client)


@pytest.mark.parametrize("verified", [False, None, "true", 1])
def test_an_address_that_is_not_verified_names_nobody(
    person: User, provider: Provider, verified: object
) -> None:
    provider.claims = {"email_verified": verified}
    client = Client()
    assert sign_in(client, provider).status_code == 403 and not is_in(client)


def test_an_address_of_two_people_or_of_one_already_linked_names_nobody(
    person: User, provider: Provider
) -> None:
    SocialAccount.objects.create(provider="oidc", uid="another", user=person)
    assert sign_in(Client(), provider).status_code == 403
    SocialAccount.objects.all().delete()
    User.objects.create_user(username="kim2", email="kim@example.com")
    assert sign_in(Client(), provider).status_code == 403


def test_who_is_not_active_stays_out(person: User, provider: Provider) -> None:
    SocialAccount.objects.create(provider="oidc", uid="subject-1", user=person)
    User.objects.update(is_active=False)
    client = Client()
    assert sign_in(client, provider).status_code == 403 and not is_in(client)


def test_a_second_factor_is_asked_for_here_too(person: User, provider: Provider) -> None:
    TOTP.activate(person, FACTOR)
    client = Client()
    assert sign_in(client, provider)["Location"] == "/login/code/" and not is_in(client)


def test_an_answer_is_good_for_the_session_that_asked_and_once(person: User, provider: Provider) -> None:
    client, other = Client(), Client()
    came = provider.authorize(client.get(BEGIN)["Location"])
    assert other.get(f"{BACK}?{came}").status_code == 400 and not is_in(other)
    assert client.get(f"{BACK}?{came}").status_code == 302
    assert client.get(f"{BACK}?{came}").status_code == 400
    for query in ("", "?state=x&code=abc", "?error=access_denied", "?code=%00"):
        assert Client().get(BACK + query).status_code == 400


def test_signing_in_again_takes_the_same_person_and_a_new_proof(person: User, provider: Provider) -> None:
    client = Client()
    sign_in(client, provider)
    session = client.session
    session["signed_in_at"] = "2020-01-01T00:00:00+00:00"
    session.save()
    assert "again=1" in client.get("/login/again/?next=/inbox/").content.decode()
    for lie in ({"auth_time": int(time.time()) - 3600}, {"auth_time": None}):
        provider.claims = lie
        assert sign_in(client, provider, "?next=/inbox/&again=1").status_code == 400
    other = User.objects.create_user(username="lee")
    SocialAccount.objects.create(provider="oidc", uid="subject-2", user=other)
    provider.claims = {"sub": "subject-2"}
    assert sign_in(client, provider, "?next=/inbox/&again=1").status_code == 400
    assert client.session["signed_in_at"].startswith("2020")
    provider.claims = {}
    assert sign_in(client, provider, "?next=/inbox/&again=1")["Location"] == "/inbox/"
    assert (provider.asked["prompt"], provider.asked["max_age"]) == ("login", "0")
    assert not client.session["signed_in_at"].startswith("2020")


@pytest.mark.parametrize("with_password", [False, True])
def test_signing_in_again_with_a_service_takes_the_code_too(
    person: User, provider: Provider, with_password: bool
) -> None:
    if not with_password:
        person.set_unusable_password()
        person.save()
    TOTP.activate(person, FACTOR)
    client = Client()
    sign_in(client, provider)
    assert client.post("/login/code/", {"code": code(FACTOR)}).status_code == 302 and is_in(client)
    session = client.session
    session["signed_in_at"] = "2020-01-01T00:00:00+00:00"
    session.save()
    again = "/login/again/?next=/inbox/"
    assert ('name="password"' in client.get(again).content.decode()) == with_password
    assert client.post(again, {"code": code(FACTOR, steps=1)}).status_code == 422

    back = sign_in(client, provider, "?next=/inbox/&again=1")["Location"]

    assert back.startswith("/login/again/") and client.session["signed_in_at"].startswith("2020")
    page = client.get(back).content.decode()
    assert "Example ID has said that it is you" in page and 'name="password"' not in page
    assert client.post(back, {"code": "000000"}).status_code == 422
    assert client.session["signed_in_at"].startswith("2020")
    assert client.post(back, {"code": code(FACTOR, steps=1)})["Location"] == "/inbox/"
    assert not client.session["signed_in_at"].startswith("2020")
    assert SignIn.objects.latest("pk").method == "Example ID, code"
    assert "has said that it is you" not in client.get(again).content.decode()


def test_what_a_service_proved_stands_for_minutes_only(person: User, provider: Provider) -> None:
    TOTP.activate(person, FACTOR)
    client = Client()
    sign_in(client, provider)
    client.post("/login/code/", {"code": code(FACTOR)})
    back = sign_in(client, provider, "?next=/inbox/&again=1")["Location"]
    session = client.session
    session["proved_by_service"]["at"] = (datetime.now(UTC) - timedelta(minutes=6)).isoformat()
    session.save()
    assert client.post(back, {"code": code(FACTOR, steps=1)}).status_code == 422


def test_a_service_that_is_away_or_unknown_is_said(person: User, settings: Settings) -> None:
    assert Client().get(BEGIN).status_code == 404
    assert "/login/with/" not in Client().get("/login/").content.decode()
    app = {"provider_id": "oidc", "name": "Gone", "client_id": "x", "secret": "x",
           "settings": {"server_url": "http://127.0.0.1:9"}}  # fmt: skip
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": [app]}}
    assert "Sign in with Gone" in Client().get("/login/").content.decode()
    assert Client().get(BEGIN).status_code == 400
