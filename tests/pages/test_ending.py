"""Ending a run, as its pages tell it: what it leaves undone, what it waits for, and what is owed afterwards."""

from __future__ import annotations

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
