"""Second factors: the code after the password, recovery codes, and the page that asks again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.test import Client

from accounts.models import OpenSession, SignIn, User
from accounts.sessions import close_session
from accounts.signals import session_closed
from tests.accounts import world

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


@pytest.fixture
def person() -> User:
    person = User.objects.create_user(username="kim", password=PASSWORD)
    totp.TOTP.activate(person, SECRET)
    return person


code = partial(world.code, SECRET)


def password_given(client: Client) -> None:
    answer = client.post("/login/?next=/inbox/", {"username": "kim", "password": PASSWORD})
    assert answer["Location"] == "/login/code/" and not is_in(client)


def is_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_who_has_a_second_factor_is_in_only_after_the_code(person: User) -> None:
    client = Client()
    password_given(client)
    assert client.get("/inbox/").status_code == 302
    wrong = client.post("/login/code/", {"code": "000000"})
    assert wrong.status_code == 422 and not is_in(client)
    answer = client.post("/login/code/", {"code": code()})
    assert answer["Location"] == "/inbox/" and is_in(client)
    assert [entry.outcome for entry in SignIn.objects.order_by("pk")] == ["wrong", "signed_in"]


def test_a_code_works_once(person: User) -> None:
    first, second = Client(), Client()
    now = code()
    for client, status in ((first, 302), (second, 422)):
        password_given(client)
        assert client.post("/login/code/", {"code": now}).status_code == status
    assert not is_in(second)


def test_a_recovery_code_works_once(person: User) -> None:
    spare = RecoveryCodes.activate(person).generate_codes()[3]
    for status in (302, 422):
        client = Client()
        password_given(client)
        assert client.post("/login/code/", {"code": spare}).status_code == status


def test_there_is_no_code_page_without_a_password(person: User) -> None:
    assert Client().get("/login/code/")["Location"] == "/login/"
    assert Client().post("/login/code/", {"code": code()})["Location"] == "/login/"


def test_guessing_codes_is_throttled(person: User) -> None:
    client = Client()
    password_given(client)
    statuses = [client.post("/login/code/", {"code": f"{n:06}"}).status_code for n in range(7)]
    assert statuses[:4] == [422] * 4 and set(statuses[4:]) == {429}
    assert client.post("/login/code/", {"code": code()}).status_code == 429 and not is_in(client)


@pytest.mark.parametrize("typed", ["", "\x00", "9" * 5000, "<script>", "１２３４５６", "-1"])
def test_no_code_at_all_is_refused_with_the_form(person: User, typed: str) -> None:
    client = Client()
    password_given(client)
    assert client.post("/login/code/", {"code": typed}).status_code == 422 and not is_in(client)


def test_secrets_are_not_in_the_database_as_they_are(person: User) -> None:
    kept = Authenticator.objects.get(user=person).data
    assert SECRET not in str(kept)


def test_signing_in_again_takes_password_and_code(person: User) -> None:
    client = Client()
    password_given(client)
    client.post("/login/code/", {"code": code()})
    session = client.session
    session["signed_in_at"] = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    session.save()
    again = "/login/again/?next=/inbox/"
    assert client.get(again).status_code == 200
    for sent in ({"password": "wrong", "code": code(steps=1)}, {"password": PASSWORD, "code": "000000"}):
        assert client.post(again, sent).status_code == 422
    answer = client.post(again, {"password": PASSWORD, "code": code(steps=1)})
    assert answer["Location"] == "/inbox/"
    at = datetime.fromisoformat(client.session["signed_in_at"])
    assert datetime.now(UTC) - at < timedelta(minutes=1)


def test_signing_in_again_leads_to_no_other_site() -> None:
    User.objects.create_user(username="lee", password=PASSWORD)
    client = Client()
    client.post("/login/", {"username": "lee", "password": PASSWORD})
    for evil in ("https://evil.example/", "//evil.example", "javascript:alert(1)"):
        answer = client.post("/login/again/", {"password": PASSWORD, "next": evil})
        assert answer["Location"] == "/"


def test_a_session_has_a_row_until_it_is_closed_and_says_so() -> None:
    person = User.objects.create_user(username="lee", password=PASSWORD)
    closed: list[str] = []
    session_closed.connect(
        lambda session_key, **_more: closed.append(session_key), weak=False, dispatch_uid="t"
    )
    clients = [Client(), Client()]
    for client in clients:
        client.post("/login/", {"username": "lee", "password": PASSWORD})
    keys = [client.session.session_key for client in clients]
    assert {row.pk for row in OpenSession.objects.filter(user=person)} == set(keys)
    clients[0].post("/logout/")
    assert closed == keys[:1]
    close_session(str(keys[1]))
    assert closed == keys and not OpenSession.objects.filter(user=person).exists()
    assert clients[1].get("/inbox/")["Location"].startswith("/login/")
    session_closed.disconnect(dispatch_uid="t")
