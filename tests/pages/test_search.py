"""What the inbox finds, in which order, and what it says to somebody whom nothing needs."""

from __future__ import annotations

from uuid import uuid4

from runs import actions
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.pages.test_inbox import run_ids
from tests.people import House, advance


def test_a_number_finds_itself_and_no_part_of_another_or_of_a_digest(house: House, sign_in: SignIn) -> None:
    wanted = house.start("1250")
    house.start("7", amount="12500.00")
    digest = house.start("8")
    Run.objects.filter(pk=digest.pk).update(start_key="order-8:aa1250bb")
    client = sign_in(house.viewer)

    assert run_ids(client, "?view=any&q=1250") == [wanted.pk]
    assert run_ids(client, "?view=any&q=ORDER-8:") == [digest.pk]
    assert run_ids(client, f"?view=any&q={wanted.pk.upper()}") == [wanted.pk]
    assert run_ids(client, "?view=any&q=ORDER+1250") == [wanted.pk]
    assert "Searched are the goal" in read(client.get("/inbox/?view=any")).one("p", id="hint-q").text


def test_all_runs_are_in_the_order_of_their_age(
    house: House, world: World, sign_in: SignIn, clock: Clock
) -> None:
    first, second = house.start("1"), house.start("2")
    actions.cancel_run(person=house.operator, run_id=first.pk, note="enough of this", submission=uuid4())
    advance(first)
    client = sign_in(house.viewer)

    assert run_ids(client, "?view=any") == [first.pk, second.pk]
    assert "By age, the newest first." in read(client.get("/inbox/?view=any")).text


def test_nothing_to_act_on_says_who_waits_and_leads_there(house: House, sign_in: SignIn) -> None:
    waiting, client = house.waiting(), sign_in(house.operator)

    page = read(client.get("/inbox/"))
    (link,) = [x for x in page.all("a") if x.text == "Show it"]

    assert "Nothing needs you. 1 run waits for others." in page.text
    assert run_ids(client, link.attrs["href"]) == [waiting.pk]
