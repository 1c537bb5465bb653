"""The run page: what it says in each state, and to whom."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.machine import events as e
from runs.machine.handoff import KEYS
from runs.machine.state import State
from runs.models import Run
from runs.pages.timeline import SENTENCES
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import House, advance


def stuck(house: House, world: World) -> Run:
    """A run whose payment was executed, its answer lost, and whose bank refuses to say so: it needs a person."""
    world.answers, world.outage = ["lost"], "the bank is closed"
    run = house.start()
    state = advance(run)
    assert state.state is State.UNKNOWN
    return run


def test_every_event_has_a_sentence() -> None:
    assert set(SENTENCES) == set(e.ALL)


def test_an_unknown_effect_is_told_with_what_is_not_safe(house: House, world: World, sign_in: SignIn) -> None:
    run = stuck(house, world)

    page = read(sign_in(house.operator).get(f"/runs/{run.pk}/"))

    action = page.part("next-safe-action").text
    assert "asks bank what became of E-1" in action
    assert "no receipt was stored" in action
    assert "Sending E-1 again: it could happen twice." in action
    row = page.one(data_testid="effect", data_effect="E-1").text
    assert "Unknown outcome" in row
    assert "Sent not recorded" in row
    assert "missing" in row
    assert not {"Failed", "Success", "Done"} & set(row.split())


@pytest.mark.parametrize("amount", ["50.00", "250.00"])
def test_the_handoff_has_seven_lines_in_order(
    house: House, world: World, sign_in: SignIn, amount: str
) -> None:
    run = house.start(amount=amount)
    client = sign_in(house.viewer)

    for _ in range(2):
        page = read(client.get(f"/runs/{run.pk}/"))
        assert [line.attrs["data-key"] for line in page.part("handoff").all("li")] == list(KEYS)
        assert all(line.text for line in page.part("handoff").all("li"))
        advance(run)


def test_who_may_act_names_others_and_the_right(house: House, sign_in: SignIn) -> None:
    run = house.waiting()

    who = read(sign_in(house.viewer).get(f"/runs/{run.pk}/")).part("who-may-act").text

    assert "Approve plan v1" in who
    assert "Viewer does not have the right “Approve plans” here." in who
    assert "People who can: Approver, Second." in who


def test_a_run_page_takes_few_queries(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    client = sign_in(house.operator)
    client.get(f"/runs/{run.pk}/")

    with CaptureQueriesContext(connection) as asked:
        assert client.get(f"/runs/{run.pk}/").status_code == 200

    assert len(asked) <= 13, [query["sql"] for query in asked]


def test_a_strangers_run_is_as_one_that_never_was(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    client = sign_in(house.stranger)

    theirs, none = client.get(f"/runs/{run.pk}/"), client.get("/runs/run_000000000000/")

    assert (theirs.status_code, none.status_code) == (404, 404)
    assert _without_ids(theirs, run.pk) == _without_ids(none, "run_000000000000")


def _without_ids(answer: Any, run_id: str) -> str:
    text = answer.content.decode().replace(run_id, "RUN").replace(answer["X-Request-Id"], "REQUEST")
    text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "TOKEN", text)
    return re.sub(r"\d\d:\d\d:\d\d[.Z\d]*", "TIME", text)


def test_a_finished_run_says_so(house: House, sign_in: SignIn) -> None:
    run = house.start()
    advance(run)

    page = read(sign_in(house.viewer).get(f"/runs/{run.pk}/"))

    assert "Nothing. The run is over." in page.part("next-safe-action").text
    assert "receipt ref-tell:1042" in page.part("handoff").text


def test_nobody_sees_a_run_without_signing_in(house: House) -> None:
    answer = Client().get(f"/runs/{house.waiting().pk}/")

    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/")
