"""What pages answer to odd input, and that their sentences are whole."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import PASSWORD, House


@pytest.mark.parametrize("name", ["oper\x00ator", "nobody", ""])
def test_a_name_that_nobody_has_gets_the_ordinary_answer(house: House, name: str) -> None:
    page = read(Client().post("/login/", {"username": name, "password": PASSWORD}))

    assert "You are not signed in." in page.part("errors").text
    assert "correct username and password" in page.part("errors").text


@pytest.mark.parametrize("asked", ["9999999", "9" * 40, "-3", "x", "0"])
def test_replay_says_that_there_is_no_such_event(house: House, sign_in: SignIn, asked: str) -> None:
    run, client = house.waiting(), sign_in(house.viewer)
    shown = read(client.get(f"/runs/{run.pk}/replay/?seq={asked}"))
    plain = read(client.get(f"/runs/{run.pk}/replay/?seq=1"))

    assert "There is no such event in this run; event" in shown.part("replay").text
    assert shown.part("stepper").text and "There is no such event" not in plain.text
