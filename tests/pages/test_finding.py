"""The page of evidence against a record: both sides, who may settle it, what is missing, and what it leads to."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.http import HttpResponse
from django.test import Client

from accounts.rights import Right, grant_right
from approvals.models import Attempt
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import EffectStatus, State
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.pages.test_inbox import run_ids
from tests.people import House, advance, assert_replays
from tests.runs.test_evidence import _late, _overtaken

SAID = {"how": "The bank read it to me on the phone.", "phrase": "50.00 1042"}


@pytest.fixture
def run(house: House, world: World, clock: Clock) -> Run:
    """A run that is over; then an older holder hears of another payment."""
    run = house.start()
    held = _overtaken(world, run, clock)
    assert advance(run).state is State.SUCCEEDED
    _late(held, executed=True, reference="ref-two")
    return run


def address(run: Run) -> str:
    return f"/runs/{run.pk}/effects/1/finding/"


def page_of(client: Client, run: Run) -> Node:
    return read(client.get(address(run)))


def send(client: Client, run: Run, **said: str) -> HttpResponse:
    """Fill the form in as shown and send it."""
    shown = form_of(page_of(client, run), testid="finding-form").sends()
    answer = client.post(address(run), {**shown, **SAID, **said})
    assert_replays(run)
    return answer  # type: ignore[return-value]


def test_both_sides_are_shown_and_the_inbox_leads_here(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)

    sides = page_of(client, run).part("sides")

    assert "receipt ref-0" in sides.part("recorded").text or "receipt ref-" in sides.part("recorded").text
    assert "reference ref-two" in sides.part("came").text
    assert run.pk in run_ids(client) and run.pk in run_ids(client, "?view=needs_human")
    row = next(r for r in read(client.get("/inbox/?view=all")).all("tr", data_testid="row"))
    assert "evidence contradicts the record of E-1: ref-two" in row.text
    assert row.all("a", href=address(run))
    assert read(client.get(f"/runs/{run.pk}/")).all("a", href=address(run))


def test_as_recorded_takes_one_person_and_leaves_the_inbox(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)

    assert send(client, run, finding="as_recorded").status_code == 302

    assert run.pk not in run_ids(client)
    page = page_of(client, run)
    assert "Settled: It is as recorded." in page.part("came").text
    assert "Operator" in page.part("finding").text and not page.all(data_testid="finding-form")
    assert "said otherwise; people settled it" in read(client.get(f"/runs/{run.pk}/")).one("main").text
    assert load(run.pk).state is State.SUCCEEDED


def test_changing_the_record_takes_the_right_to_attest(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    choice = next(
        x
        for x in page_of(client, run).part("find").all("div")
        if x.attrs.get("data-outcome") == "happened_twice"
    )
    assert "Attest effects" in choice.text
    assert send(client, run, finding="happened_twice").status_code == 403
    grant_right(
        to=house.operator, right=Right.ATTEST_EFFECTS, obj=house.agent, actor=None, now=database_now()
    )

    assert send(client, run, finding="happened_twice").status_code == 302

    shown = read(client.get(f"/runs/{run.pk}/")).one("main").text
    assert "It happened twice, as people found" in shown and "ref-two" in shown
    assert load(run.pk).effects[1].status is EffectStatus.CONFIRMED
    assert run.pk in run_ids(client), "it owes the undoing"


def test_what_is_missing_is_said_and_what_was_typed_is_kept(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    for said, field in (
        ({"finding": ""}, "Choose what you found."),
        ({"finding": "as_recorded", "how": "no"}, "at least 10 characters"),
        ({"finding": "as_recorded", "phrase": "yes"}, "The phrase does not fit"),
        ({"finding": "as_recorded", "reference": "x" * 201}, "Use at most 200 characters"),
        ({"finding": "not_happened"}, ""),
    ):
        answer = send(client, run, **said)
        assert answer.status_code in (422, 403), said
        assert field in answer.content.decode(), said
    assert load(run.pk).effects[1].findings == ()
    assert Attempt.objects.filter(action="settle").count() == 5


def test_a_form_about_what_was_settled_meanwhile_is_a_conflict(
    house: House, run: Run, sign_in: SignIn
) -> None:
    client = sign_in(house.operator)
    shown = form_of(page_of(client, run), testid="finding-form").sends()
    send(client, run, finding="as_recorded")

    answer = client.post(
        address(run), {**shown, **SAID, "finding": "as_recorded", "submission": str(uuid4())}
    )

    assert answer.status_code == 409
    assert "was not recorded and nothing was sent" in read(answer).part("conflict").text
    assert len(load(run.pk).effects[1].findings) == 1
    again = client.post(address(run), {**shown, **SAID, "finding": "as_recorded"})
    assert again.status_code == 409


def test_those_who_may_not_see_who_can(house: House, run: Run, sign_in: SignIn) -> None:
    page = page_of(sign_in(house.viewer), run)
    assert "Operator" in page.part("why-not").text
    assert not page.all(data_testid="finding-form")
