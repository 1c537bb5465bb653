"""The end of a request on the pages: they agree before it is recorded, and what was typed outlives it."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from pytest_django import Settings

from approvals.models import Attempt, Decision
from runs import agents
from runs.machine.state import State
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.pages.test_inbox import rows
from tests.pages.test_review import address, approval
from tests.people import House, advance, assert_replays

#: Requests stand for 50 s here; their end is announced a quarter before.
NEARLY, OVER = timedelta(seconds=40), timedelta(minutes=1)


def test_all_pages_agree_before_it_is_recorded_and_after(house: House, sign_in: SignIn, clock: Clock) -> None:
    run, operator = house.waiting(), sign_in(house.operator)
    clock.move(NEARLY)
    (row,) = rows(operator)
    assert "Expires soon. The request for approval of plan v1 expires at" in row.text
    clock.move(OVER)

    for recorded in (False, True):
        if recorded:
            assert advance(run).requests[-1].closed_seq
        (row,) = rows(operator)
        assert "Request expired at" in row.text and "Expires soon" not in row.text
        page = read(operator.get(f"/runs/{run.pk}/"))
        assert "Ask for approval of plan v1 again" in page.part("next-safe-action").text
        assert "Approve plan v1" not in page.part("who-may-act").text
        assert page.part("approval").attrs["data-state"] == "expired"
        assert "time for approving it is over" in read(operator.get(f"/runs/{run.pk}/plan/1/")).text
        review = read(sign_in(house.approver).get(address(run)))
        assert "This review expired." in review.part("expired").text
        assert not review.all(data_testid="decision-form")


def test_renewing_from_the_review_keeps_what_was_typed(
    house: House, world: World, sign_in: SignIn, clock: Clock
) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    sent = {**approval(client, run), "reason": "the amount fits the order"}
    clock.move(OVER)
    late = read(client.post(address(run), sent))
    assert late.part("renew-form").one("textarea").text == "the amount fits the order"

    renewal = {**late.part("renew-form").sends(), "renew": "1"}
    answers = [client.post(address(run), renewal) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(assert_replays(run).requests) == 2
    page = read(answers[0])
    assert page.one("textarea").text == "the amount fits the order"
    assert "Nothing else that an approval is bound to has changed since." in page.part("before").text
    again = {**form_of(page, testid="decision-form").sends(), "decision": "approve", "phrase": "250.00 2000"}
    assert client.post(address(run), again).status_code == 302
    assert Decision.objects.get().reason == "the amount fits the order"
    assert advance(run).state is State.SUCCEEDED


def test_one_who_may_only_look_is_told_who_can_renew(house: House, sign_in: SignIn, clock: Clock) -> None:
    run, viewer = house.waiting(), sign_in(house.viewer)
    clock.move(OVER)

    assert "People who can: Operator." in read(viewer.get(address(run))).part("expired").text
    assert viewer.post(address(run), {"renew": "1"}).status_code in (403, 422)
    assert len(assert_replays(run).requests) == 1


def test_asking_again_where_the_console_has_not_the_code_says_so_and_asks_nobody(
    house: House, sign_in: SignIn, clock: Clock, settings: Settings
) -> None:
    """As after an upgrade that left the version behind: its policy says who is to be asked."""
    run, approver, operator = house.waiting(), sign_in(house.approver), sign_in(house.operator)
    clock.move(OVER)
    settings.HANDOFF_AGENTS = []
    agents.registered.cache_clear()

    for client, url in ((approver, address(run)), (operator, f"/runs/{run.pk}/renew/")):
        subject = read(operator.get(f"/runs/{run.pk}/renew/")).one("input", name="subject").attrs["value"]
        sent = {"renew": "1", "submission": str(uuid4()), "reason": "the order fits", "subject": subject}
        answer = client.post(url, sent)
        assert answer.status_code == 409
        assert "the code of version 1 of payer is not here" in read(answer).part("conflict").text
    assert len(assert_replays(run).requests) == 1 and Attempt.objects.count() == 2
