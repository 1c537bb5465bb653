"""Taking one's own approval back in the console."""

from __future__ import annotations

from approvals.models import Attempt
from runs.machine.state import RequestStatus
from runs.models import Run
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.people import House, advance, assert_replays

WHY = "The supplier is another one."


def address(run: Run) -> str:
    return f"/runs/{run.pk}/plan/1/take-back/"


def test_the_one_who_approved_finds_it_and_takes_it_back(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.approved(), sign_in(house.approver)
    assert (
        "Take back your approval of plan v1" in read(client.get(f"/runs/{run.pk}/")).part("who-may-act").text
    )
    review = read(client.get(f"/runs/{run.pk}/plan/1/review/"))
    page = read(client.get(review.part("take-back").attrs["href"]))
    assert "pay 250.00 EUR for order 2000" in page.part("left").text
    sent = form_of(page, testid="take-back-form").sends()

    wrong = client.post(address(run), {**sent, "reason": "no"})
    assert wrong.status_code == 422
    assert read(wrong).one("textarea").text == "no"
    done = client.post(address(run), {**sent, "reason": WHY}, follow=True)

    assert "You took your approval of plan v1 back." in read(done).part("result").text
    assert "Review plan v1" in read(done).part("next-safe-action").text
    assert (
        f"Approver took the approval of plan v1 back. Nothing more is sent on it. “{WHY}”" in read(done).text
    )
    assert advance(run).requests[-1].status is RequestStatus.PENDING
    assert world.calls == []
    assert f"“{WHY}”" in read(sign_in(house.second).get(f"/runs/{run.pk}/plan/1/review/")).part("before").text
    again = client.post(address(run), {**sent, "reason": WHY})
    assert again.status_code == 302
    assert len(assert_replays(run).requests) == 2


def test_nobody_finds_anothers_approval_to_take_back(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.approved(), sign_in(house.second)
    assert "Take back" not in read(client.get(f"/runs/{run.pk}/")).text
    assert "You have no approval" in read(client.get(address(run))).part("over").text

    answer = client.post(address(run), {"reason": WHY, "submission": "6f0c5a1e-0000-4000-8000-000000000000"})

    assert answer.status_code == 409
    assert "Nothing was taken back." in read(answer).part("conflict").text
    assert read(answer).one("textarea").text == WHY
    assert Attempt.objects.get().refusal == "not_open"


def test_what_was_consumed_is_not_taken_back(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.approved(), sign_in(house.approver)
    sent = form_of(read(client.get(address(run))), testid="take-back-form").sends()
    advance(run)

    answer = client.post(address(run), {**sent, "reason": WHY})

    assert answer.status_code == 409
    assert "This cannot be done any more: Used." in read(answer).part("conflict").text
