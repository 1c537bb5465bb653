"""Ending a run, as its pages tell it: what it leaves undone, what it waits for, and what is owed afterwards."""

from __future__ import annotations

from runs.machine.state import State
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.pages.test_run import stuck
from tests.people import House, advance


def test_the_stop_page_says_what_is_in_doubt(house: House, world: World, sign_in: SignIn) -> None:
    run = stuck(house, world)

    impact = read(sign_in(house.operator).get(f"/runs/{run.pk}/stop/")).part("impact").text

    assert "Nothing was done yet" not in impact
    assert "E-1 (pay 50.00 EUR for order 1042, cannot be undone) may have happened." in impact
    assert "Ending the run does not undo it and does not settle it." in impact
    assert "The run does not end before E-1 is settled. It stays open until then" in impact
    assert "Not sent any more: tell the supplier about order 1042." in impact


def test_the_stop_page_names_what_is_confirmed(house: House, world: World, sign_in: SignIn) -> None:
    world.answers = ["", "refused"]
    run = house.start()
    advance(run)

    impact = read(sign_in(house.operator).get(f"/runs/{run.pk}/stop/")).part("impact").text

    assert "It does not undo the 1 confirmed effect." in impact
    assert "Stays as it is: E-1 (pay 50.00 EUR for order 1042, cannot be undone)." in impact


def test_a_cancel_that_would_wait_is_offered_with_that(house: House, world: World, sign_in: SignIn) -> None:
    run = stuck(house, world)

    page = read(sign_in(house.operator).get(f"/runs/{run.pk}/"))
    viewed = read(sign_in(house.viewer).get(f"/runs/{run.pk}/")).part("who-may-act").text
    printed = sign_in(house.viewer).get(f"/runs/{run.pk}/handoff/?format=text").content.decode()

    sentence = "Ending the run now does not settle E-1: it would wait for it."
    assert sentence in page.part("next-safe-action").text and sentence in printed
    assert "nobody would settle" not in page.text
    assert "Cancel the run you. It waits until E-1 is settled." in page.part("who-may-act").text
    assert "People who can: Operator. It waits until E-1 is settled." in viewed


def test_a_cancel_that_waits_is_told_at_the_top(house: House, world: World, sign_in: SignIn) -> None:
    run = stuck(house, world)
    client = sign_in(house.operator)
    before = read(client.get(f"/runs/{run.pk}/")).part("next-safe-action").one("p", **{"class": "do"}).text
    house.cancel(run)

    page = read(client.get(f"/runs/{run.pk}/"))

    asked = page.part("end-asked").text
    assert asked.startswith("Operator asked for the end of this run at ")
    assert asked.endswith("UTC: “not needed”. It waits until E-1 is settled.")
    assert "1 effect that cannot be undone is in doubt. Its end was asked for." in page.one("main").text
    assert page.part("next-safe-action").one("p", **{"class": "do"}).text == before
    assert "Other actions" not in page.part("next-safe-action").text
    assert "Cancel the run" not in page.part("who-may-act").text
    assert asked in page.part("handoff").one("li", data_key="next").text


def test_what_a_cancelled_run_owes_is_its_operators_to_settle(
    house: House, world: World, sign_in: SignIn
) -> None:
    world.answers = ["", "refused"]
    run = house.start()
    advance(run)
    house.cancel(run)
    assert advance(run).state is State.CANCELLED

    page = read(sign_in(house.operator).get(f"/runs/{run.pk}/"))
    viewed = read(sign_in(house.viewer).get(f"/runs/{run.pk}/")).part("who-may-act").text

    action = page.part("next-safe-action").text
    assert "then state that it is done: B-1 (tell the supplier of 1042)." in action
    assert "Owner: Operator. It stays listed here and in the inbox until it is done." in action
    assert "State that B-1 is done" in page.part("who-may-act").text
    assert "Hand B-1 on you" in page.part("who-may-act").text
    assert (
        "Hand B-1 on Viewer does not have the right “Operate runs” here. People who can: Operator." in viewed
    )
    line = page.part("handoff").one("li", data_key="next")
    assert "Nothing here" not in line.text and "Do what the run still owes" in line.text
    assert "tell the supplier of 1042" in read(sign_in(house.operator).get("/inbox/")).text


def test_cancelling_stands_among_the_choices(house: House, world: World, sign_in: SignIn) -> None:
    world.answers = ["refused"]
    run = house.start()
    advance(run)
    client = sign_in(house.operator)

    action = read(client.get(f"/runs/{run.pk}/")).part("next-safe-action").one("p", **{"class": "do"}).text
    choices = read(client.get(f"/runs/{run.pk}/decide/")).one("fieldset")

    announced = action.removeprefix("Decide how the run goes on: ").removesuffix(".").split(", ")
    offered = [label.one("b").text for label in choices.all("label")] + [choices.one("a").text]
    assert offered == announced
    assert choices.one("a").attrs["href"] == f"/runs/{run.pk}/stop/"
