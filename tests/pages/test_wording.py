"""What pages answer to odd input, and that their sentences are whole."""

from __future__ import annotations

import pytest
from django.test import Client

from approvals.models import Decision, Verdict
from runs.pages import words
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.pages.test_review import address, form
from tests.pages.test_run import stuck
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


def test_a_long_reason_is_refused_with_its_length_and_kept(house: House, sign_in: SignIn) -> None:
    run, client, long = house.waiting(), sign_in(house.approver), "x" * 4321
    plain = read(client.get(address(run)))

    answer = client.post(address(run), {**form(client, run), "decision": "reject", "reason": long})

    assert "maxlength" not in plain.one("textarea").attrs
    assert "At most 4000 characters." in plain.one(id="hint-reason").text
    assert answer.status_code == 422
    assert "Use at most 4000 characters; these are 4321." in read(answer).part("errors").text
    assert read(answer).one("textarea").text == long


def test_a_long_reason_is_quoted_short_and_stands_whole_below(house: House, sign_in: SignIn) -> None:
    run, reason = house.waiting(), f"{'y' * 3000} and the end of it."
    house.decide(run, house.approver, Verdict.REJECT, reason)
    client = sign_in(house.operator)

    page = read(client.get(f"/runs/{run.pk}/"))

    action = page.part("next-safe-action")
    assert f"{'y' * 200}… All of it in event" in action.text
    (link,) = [a for a in action.all("a") if "All of it" in a.text]
    event = read(client.get(link.attrs["href"].partition("#")[0])).one(
        id=link.attrs["href"].partition("#")[2]
    )
    assert reason in event.text
    assert reason in page.part("timeline").text and reason in page.part("approval").text
    assert reason not in read(client.get("/inbox/?view=all")).text
    assert Decision.objects.get().reason == reason


def test_no_sentence_ends_twice(house: House, world: World, sign_in: SignIn) -> None:
    run = stuck(house, world)

    page = read(sign_in(house.operator).get(f"/runs/{run.pk}/"))

    assert ".." not in page.part("timeline").text and ".)." not in page.part("timeline").text


@pytest.mark.parametrize(
    ("text", "said"),
    [("no answer.", "no answer"), ("no answer", "no answer"), ("wait...", "wait..."), ("", "")],
)
def test_a_text_of_others_loses_its_own_full_stop(text: str, said: str) -> None:
    assert words.inside(text) == said
