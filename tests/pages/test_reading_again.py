"""Reading what a run knows once more, from its page: what changed is said, and nothing moves."""

from __future__ import annotations

from datetime import timedelta

from approvals.models import Attempt
from runs import agents
from runs.ledger import load
from runs.machine.state import State
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import LookUp, World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, read
from tests.people import House, advance, assert_replays


def url(run: Run) -> str:
    return f"/runs/{run.pk}/observations/read/"


def submission(page: Node) -> str:
    return str(page.one("form", id="read-again").one("input", name="submission").attrs["value"])


def test_it_is_read_again_once_for_each_form_and_says_what_changed(
    house: House, world: World, sign_in: SignIn, clock: Clock
) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    clock.move(2 * LookUp.half_life)
    page = read(client.get(f"/runs/{run.pk}/"))
    assert "too old: limit" in page.part("observations").text
    world.versions["2000"] = "v2"
    sent = {"submission": submission(page), "observation": "1"}

    first, second = client.post(url(run), sent), client.post(url(run), sent)

    assert first["Location"] == second["Location"]
    page = read(client.get(first["Location"]))
    assert "It was read again now." in page.part("result").text
    said = page.part("read-again-O-1").text
    assert "Read again by Operator at" in said
    assert "version v1 → v2" in said and "it is otherwise" in said
    assert load(run.pk).state is State.WAITING_APPROVAL


def test_the_same_value_is_current_again(house: House, world: World, sign_in: SignIn, clock: Clock) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    clock.move(2 * LookUp.half_life)
    page = read(client.get(f"/runs/{run.pk}/"))

    done = client.post(url(run), {"submission": submission(page), "observation": "all"})

    page = read(client.get(done["Location"]))
    assert "the same (event" in page.part("read-again-O-1").text
    assert "too old: limit" not in page.part("observations").text
    assert_replays(run)


def test_what_cannot_be_read_is_said_and_nothing_is_stored(
    house: House, world: World, sign_in: SignIn
) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    sent = {"submission": submission(read(client.get(f"/runs/{run.pk}/"))), "observation": "1"}
    before, world.unreadable = load(run.pk), "the shop is closed"

    answer = client.post(url(run), sent)

    assert answer.status_code == 409
    assert "O-1: it could not be read: the shop is closed. Nothing was stored" in read(answer).text
    none = client.post(url(run), {**sent, "observation": "7"})
    assert none.status_code == 422 and "no observation of that number" in read(none).text
    assert load(run.pk) == before and Attempt.objects.count() == 2


def test_who_may_not_has_no_button_and_a_run_that_is_over_none_either(
    house: House, world: World, sign_in: SignIn
) -> None:
    run = house.waiting()
    form = submission(read(sign_in(house.operator).get(f"/runs/{run.pk}/")))
    viewer = sign_in(house.viewer)
    assert "Read O-1 again" not in read(viewer.get(f"/runs/{run.pk}/")).text
    assert viewer.post(url(run), {"submission": form, "observation": "1"}).status_code == 403
    house.cancel(run)
    advance(run)

    client = sign_in(house.operator)

    assert "Read O-1 again" not in read(client.get(f"/runs/{run.pk}/")).text
    refused = client.post(url(run), {"submission": form, "observation": "1"})
    assert refused.status_code == 409 and "The run is over" in read(refused).text


def test_a_console_without_the_agents_code_says_so(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    form = submission(read(client.get(f"/runs/{run.pk}/")))
    Run.objects.filter(pk=run.pk).update(agent_version="9")
    assert ("payer", "9") not in agents.registered()

    answer = client.post(url(run), {"submission": form, "observation": "1"})

    assert answer.status_code == 422 and "does not have the agent’s version" in read(answer).text
    Run.objects.filter(pk=run.pk).update(agent_version="1")
    assert load(run.pk).at - load(run.pk).identity.started_at < timedelta(minutes=1)
