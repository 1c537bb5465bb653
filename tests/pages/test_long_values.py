"""Long arguments: nothing is cut off up to 64 KB; beyond it an approver has opened what is shown by its ends."""

from __future__ import annotations

import hashlib

from django.test import Client

from approvals.models import Attempt, Decision, OpenedValue
from runs.ledger import load
from runs.machine.state import State
from runs.models import Run
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.people import House, advance, assert_replays

LONG = "first words " + "a" * 40_000 + " in the middle " + "b" * 40_000 + " last words"


def letter(house: House, text: str) -> Run:
    return house.scripted([{"tool": "letter", "order": "2000", "amount": "250.00", "text": text}])


def address(run: Run) -> str:
    return f"/runs/{run.pk}/plan/1/review/"


def approve(client: Client, run: Run) -> Node | None:
    """Send the form; the page that refuses it, or None."""
    sent = form_of(read(client.get(address(run))), testid="decision-form").sends()
    answer = client.post(
        address(run), {**sent, "decision": "approve", "phrase": "250.00 2000", "reason": "kept"}
    )
    if answer.status_code == 302:
        return None
    assert answer.status_code == 422
    return read(answer)


def test_the_tail_of_a_long_line_is_on_the_page(house: House, sign_in: SignIn) -> None:
    run = letter(house, "x" * 4000 + " and pay it all to me")

    page = read(sign_in(house.approver).get(address(run)))

    assert "x" * 4000 + " and pay it all to me" in page.part("exec-list").text
    assert not page.all(data_testid="unopened")


def test_up_to_64_kb_all_of_it_is_shown(house: House, sign_in: SignIn) -> None:
    text = "y" * 60_000 + " the end"
    run, client = letter(house, text), sign_in(house.approver)
    assert text in read(client.get(address(run))).part("exec-list").text
    assert approve(client, run) is None


def test_a_longer_value_is_opened_by_each_approver_before_it_can_be_approved(
    house: House, world: World, sign_in: SignIn
) -> None:
    run, client = letter(house, LONG), sign_in(house.approver)
    plan = load(run.pk).plan
    assert plan is not None
    page = read(client.get(address(run)))
    shown = page.part("exec-list").text
    assert "first words" in shown and "last words" in shown and "in the middle" not in shown
    assert f"{len(LONG)} bytes" in shown and hashlib.sha256(LONG.encode()).hexdigest()[:6] in shown
    link = page.part("unopened").one("a").attrs["href"]

    refused = approve(client, run)

    assert refused is not None
    assert "Open these values first, since their middle is not shown here: letter:2000 text." in refused.text
    assert refused.one("textarea").text == "kept"
    assert (Attempt.objects.latest("at").refusal, Decision.objects.count()) == ("values_unopened", 0)

    # Somebody else's look, and one that shows nothing, do not count.
    sign_in(house.viewer).get(link)
    client.head(link)
    assert approve(client, run) is not None

    whole = read(client.get(link))
    assert whole.part("value").text.strip() == LONG
    client.get(link)
    seen = OpenedValue.objects.filter(person=house.approver)
    assert [(x.digest, x.number) for x in seen] == [(plan.digest, 3)]
    again = read(client.get(address(run)))
    assert not again.all(data_testid="unopened") and "You have opened it." in again.part("exec-list").text
    assert approve(client, run) is None
    assert advance(run).state is State.SUCCEEDED
    assert world.executed[0][2]["text"] == LONG
    assert_replays(run)


def test_a_plan_that_nobody_opened_can_be_rejected(house: House, sign_in: SignIn) -> None:
    run, client = letter(house, LONG), sign_in(house.approver)
    sent = form_of(read(client.get(address(run))), testid="decision-form").sends()
    refusal = {"decision": "reject", "reason": "far too long for a letter"}
    assert client.post(address(run), {**sent, **refusal}).status_code == 302


def test_there_is_no_other_value(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    for path in ("1/value/99/", "1/value/0/", "2/value/1/"):
        assert sign_in(house.approver).get(f"/runs/{run.pk}/plan/{path}").status_code == 404
    assert sign_in(house.stranger).get(f"/runs/{run.pk}/plan/1/value/1/").status_code == 404
    assert not OpenedValue.objects.exists()
