"""Giving a run an answer, in the browser and by a program; and what its page says of waits and answers."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from runs.ledger import load
from runs.machine.state import State
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.people import House, advance

WAIT, PAY = {"signal": "go", "within": 600}, {"tool": "pay", "order": "7"}


def test_a_waiting_run_says_for_what_and_since_when(house: House, sign_in: SignIn) -> None:
    run = house.scripted([WAIT, PAY])

    page = read(sign_in(house.operator).get(f"/runs/{run.pk}/"))
    viewed = read(sign_in(house.viewer).get(f"/runs/{run.pk}/"))

    assert "Step hear:go waits for the answer “go”" in page.part("wait").text
    assert "at most until" in page.part("wait").text
    action = page.part("next-safe-action")
    assert "Wait for the answer “go”, or give it." in action.text
    assert action.one("a", href=f"/runs/{run.pk}/answer/").text == "Give the answer “go”"
    assert "Give the answer “go” you" in page.part("who-may-act").text
    assert f"/runs/{run.pk}/answer/" not in [a.attrs.get("href") for a in viewed.one("main").all("a")]
    pending = page.part("handoff").one("li", data_key="pending").text
    assert "1 planned, not sent · 1 wait" in pending
    assert "planned: wait" not in pending


def test_an_answer_is_given_once_and_the_run_goes_on(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.scripted([WAIT, PAY]), sign_in(house.operator)
    page = read(client.get(f"/runs/{run.pk}/answer/"))
    sent = form_of(page).sends()
    assert sent["name"] == "go" and "The run waits for the answer “go” until" in page.part("awaited").text
    sent["payload"] = '{"b": [1, 2], "a": "yes"}'

    first = client.post(f"/runs/{run.pk}/answer/", sent)
    second = client.post(f"/runs/{run.pk}/answer/", sent)

    assert first["Location"] == second["Location"]
    assert "Your answer was recorded." in read(client.get(first["Location"])).part("result").text
    (signal,) = load(run.pk).signals
    assert signal.payload == '{"a":"yes","b":[1,2]}'
    assert advance(run).state is State.SUCCEEDED and world.times("pay:7") == 1
    shown = read(client.get(f"/runs/{run.pk}/")).part("answer")
    assert "taken by step hear:go" in shown.text and '"a": "yes"' in shown.one("pre").text
    assert "Operator" in shown.text


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("", "null"), ("  yes, do it ", '"yes, do it"'), ("true", "true"), ("12.50", "12.5"), ("NaN", '"NaN"'),
        ('"quoted"', '"quoted"'), ("order 重复", '"order 重复"'), ("1042 is fine", '"1042 is fine"'),
    ],
)  # fmt: skip
def test_what_is_typed_is_json_or_text(house: House, sign_in: SignIn, typed: str, stored: str) -> None:
    run, client = house.scripted([WAIT, PAY]), sign_in(house.operator)
    sent = form_of(read(client.get(f"/runs/{run.pk}/answer/"))).sends()
    client.post(f"/runs/{run.pk}/answer/", {**sent, "payload": typed})
    assert [x.payload for x in load(run.pk).signals] == [stored]


@pytest.mark.parametrize(
    ("name", "payload", "said"),
    [
        ("go", '{"a": ', "not JSON"),
        ("go", '{"a": 1, "a": 2}', "this key stands twice"),
        ("go", "[NaN]", "NaN has no canonical form"),
        ("go", "9007199254740993", "write it as a string"),
        ("go", "x" * 4001, "Use at most 4000 characters"),
        ("Not A Name", "1", "No answer can have this name."),
        ("", "1", "No answer can have this name."),
    ],
)  # fmt: skip
def test_what_cannot_be_stored_is_refused_and_kept_on_the_page(
    house: House, sign_in: SignIn, name: str, payload: str, said: str
) -> None:
    run, client = house.scripted([WAIT, PAY]), sign_in(house.operator)
    sent = {"name": name, "payload": payload, "submission": str(uuid4())}

    answer = client.post(f"/runs/{run.pk}/answer/", sent)

    page = read(answer)
    assert answer.status_code == 422 and said in page.part("errors").text
    assert page.one("textarea").text == " ".join(payload.split())
    assert load(run.pk).signals == ()


def test_an_answer_before_its_time_and_one_that_comes_late(
    house: House, sign_in: SignIn, clock: Clock
) -> None:
    run, client = house.scripted([{"timer": 60}, WAIT, PAY]), sign_in(house.operator)
    page = read(client.get(f"/runs/{run.pk}/answer/"))
    assert "The run waits for no answer now." in page.part("awaited").text
    assert form_of(page).sends()["name"] == "go"
    assert "Wait until" in read(client.get(f"/runs/{run.pk}/")).part("next-safe-action").text
    clock.move(timedelta(seconds=61))
    advance(run)
    clock.move(timedelta(seconds=601))
    assert advance(run).state is State.NEEDS_HUMAN

    page = read(client.get(f"/runs/{run.pk}/answer/"))
    assert "The answer “go” did not come in time." in page.part("awaited").text
    assert form_of(page).sends()["name"] == "go"
    decide = read(client.get(f"/runs/{run.pk}/decide/"))
    assert "The run waits on for the answer, for as long again." in decide.text
    assert "It did not come in time." in read(client.get(f"/runs/{run.pk}/")).part("waits").text


def test_who_may_answer_and_who_may_not(house: House, sign_in: SignIn) -> None:
    run = house.scripted([WAIT, PAY])
    sent = {"name": "go", "payload": "1", "submission": str(uuid4())}
    viewer, stranger = sign_in(house.viewer), sign_in(house.stranger)
    assert "You may not give this run an answer" in read(viewer.get(f"/runs/{run.pk}/answer/")).text
    assert viewer.post(f"/runs/{run.pk}/answer/", sent).status_code == 403
    assert stranger.get(f"/runs/{run.pk}/answer/").status_code == 404
    assert stranger.post(f"/runs/{run.pk}/answer/", sent).status_code == 404
    assert load(run.pk).signals == ()


def test_a_run_that_is_over_takes_no_answer(house: House, sign_in: SignIn) -> None:
    run, client = house.start(), sign_in(house.operator)
    advance(run)
    assert "takes no answer any more" in read(client.get(f"/runs/{run.pk}/answer/")).text
    sent = {"name": "go", "payload": "1", "submission": str(uuid4())}
    assert client.post(f"/runs/{run.pk}/answer/", sent).status_code == 409


def test_a_program_answers_once_for_each_id(house: House, world: World) -> None:
    run, out = house.scripted([WAIT, PAY]), StringIO()
    for _ in range(2):
        call_command(
            "signal", run.pk, "go", '{"by": "post"}', "--as", "operator", "--id", "letter 7", stdout=out
        )
    assert [x.payload for x in load(run.pk).signals] == ['{"by":"post"}']
    assert "is recorded, event" in out.getvalue() and "was recorded before" in out.getvalue()
    assert advance(run).state is State.SUCCEEDED


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["go", "1", "--as", "nobody"], "There is nobody with the username nobody"),
        (["go", "1", "--as", "viewer"], "Nothing was recorded"),
        (["go", "1", "--as", "stranger"], "sees no run"),
        (["Go!", "1", "--as", "operator"], "No answer can have this name"),
        (["go", "{", "--as", "operator"], "not JSON"),
    ],
)  # fmt: skip
def test_a_program_is_told_what_was_not_recorded(house: House, arguments: list[str], said: str) -> None:
    run = house.scripted([WAIT, PAY])
    with pytest.raises(CommandError, match=said):
        call_command("signal", run.pk, *arguments)
    assert load(run.pk).signals == ()
