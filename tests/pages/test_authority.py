"""What a run acts on, on its page: told by the grant itself, ended by a form, checked at a person's word."""

from __future__ import annotations

from uuid import uuid4

import pytest
from msgspec.structs import replace

from approvals.models import Attempt, Verdict
from runs import actions, grants, recovery
from runs.binding import never_read
from runs.ledger import load
from runs.machine import events as e
from runs.machine.state import RequestStatus, State
from runs.models import Event, Grant, Run
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.people import House, assert_replays


def told(page: Node) -> str:
    return page.part("authority").text


def test_checks_are_made_at_a_persons_word_kept_once_and_move_nothing(
    house: House, world: World, sign_in: SignIn
) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    before = Run.objects.filter(pk=run.pk).values("state", "wake_at", "lease_token").get()
    page = read(client.get(f"/runs/{run.pk}/"))
    sent = page.part("authority").one("form").sends()

    answer = read(client.post(f"/runs/{run.pk}/check/", sent, follow=True))

    assert "All checks were made now." in answer.part("result").text
    assert "All pass. Nothing was moved." in told(answer) and "Operator had" in told(answer)
    assert client.post(f"/runs/{run.pk}/check/", sent).status_code == 302, "the same form is the same checks"
    assert Event.objects.filter(run=run, type=e.ChecksMade.__name__).count() == 1
    assert Run.objects.filter(pk=run.pk).values("state", "wake_at", "lease_token").get() == before
    world.versions["order:1042"] = "changed"
    world.unreadable = "the shop is closed"
    again = read(client.post(f"/runs/{run.pk}/check/", {"submission": str(uuid4())}, follow=True))
    assert "These fail, and nothing was moved:" in told(again)
    assert assert_replays(run).state is State.WAITING_APPROVAL


def test_who_may_not_operate_reads_why_and_a_run_that_is_over_is_not_checked(
    house: House, world: World, sign_in: SignIn
) -> None:
    run = house.waiting()
    viewer = sign_in(house.viewer)
    assert "Check now: Viewer does not have the right" in told(read(viewer.get(f"/runs/{run.pk}/")))
    assert viewer.post(f"/runs/{run.pk}/check/", {"submission": str(uuid4())}).status_code == 403
    assert Attempt.objects.filter(action="check", refusal="not_allowed").count() == 1
    assert assert_replays(run).checked is None


def test_ending_a_grant_shows_what_it_stops_and_is_refused_where_that_changed(
    house: House, world: World, sign_in: SignIn
) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    grant = Grant.objects.get(runs=run)
    page = read(client.get(f"/runs/{run.pk}/"))
    address = f"/grants/{grant.pk}/end/"
    assert page.part("authority").one("a").attrs["href"] == address
    assert f"G-{str(grant.pk)[:8]}" in read(client.get("/grants/")).part("grants-1").text
    shown = read(client.get(address))
    assert "1 open run acts on it." in shown.part("impact").text and run.pk in shown.text
    sent = {**form_of(shown).sends(), "reason": "The supplier is under review."}
    assert client.post(address, {**sent, "reason": "no"}).status_code == 422
    stale = client.post(address, {**sent, "impact": "impact:another"})
    assert stale.status_code == 409 and "The supplier is under review." in read(stale).text
    assert sign_in(house.viewer).post(address, sent).status_code == 403
    assert sign_in(house.stranger).get(address).status_code == 404
    assert Grant.objects.get(pk=grant.pk).ended_at is None

    answer = read(client.post(address, sent, follow=True))

    assert "The grant was ended." in answer.part("result").text
    assert client.post(address, sent).status_code == 302, "the same form again is the same end"
    now = read(client.get(f"/runs/{run.pk}/"))
    assert "It does not carry the run any more: the grant was ended." in now.part("grant-over").text
    assert "ended by" not in now.text
    review = read(sign_in(house.approver).get(f"/runs/{run.pk}/plan/1/review/"))
    assert "lent anew" in review.text, "told from the grant, before the run is marked"
    recovery.sweep()
    assert assert_replays(run).state is State.NEEDS_HUMAN
    over = read(client.get(address))
    assert "Operator ended it" in over.part("ended").text
    log = read(client.get("/audit/")).text
    assert "ended a grant" in log and "tried: End a grant" in log


def test_an_approval_that_is_sent_while_the_grant_is_over_is_refused_by_the_action(
    house: House, world: World, sign_in: SignIn
) -> None:
    """The page was opened before; also who sends the form past the page is refused, and may still reject."""
    run, client = house.waiting(), sign_in(house.approver)
    address = f"/runs/{run.pk}/plan/1/review/"
    page = read(client.get(address))
    sent = {
        **form_of(page, testid="decision-form").sends(), "decision": "approve", "reason": "as was agreed",
        "phrase": "250.00 2000",
    }  # fmt: skip
    end_grant(house, run)

    answer = client.post(address, sent)

    assert answer.status_code == 409
    said = read(answer)
    assert "what the run acts on is over. It has to be lent anew" in said.part("conflict").text
    assert said.one("textarea", name="reason").text == "as was agreed"
    attempt = Attempt.objects.get(refusal="ground_missing")
    assert attempt.detail == {"what": "authority: ended"}
    assert assert_replays(run).requests[-1].decisions == ()
    house.decide(run, house.approver, Verdict.REJECT, "no authority is left")
    assert load(run.pk).requests[-1].status is RequestStatus.REJECTED


def test_a_plan_that_rests_on_what_was_never_read_cannot_be_approved(house: House, world: World) -> None:
    state = load(house.waiting().pk)
    assert never_read(state) == ()
    assert [r.resource for r in never_read(replace(state, observations={}))] == ["order:2000"]


def end_grant(house: House, run: Run) -> None:
    grant = Grant.objects.get(runs=run)
    actions.end_grant(
        person=house.operator, grant=grant.pk, why="not needed", impact=grants.impact_of(grant).digest,
        submission=uuid4(),
    )  # fmt: skip


def test_others_grants_are_listed_for_those_who_operate_the_agent(
    house: House, world: World, sign_in: SignIn
) -> None:
    house.waiting()
    assert "You lent nothing." in read(sign_in(house.viewer).get("/grants/")).text
    assert "Operator" not in read(sign_in(house.stranger).get("/grants/")).part("grants-2").text


@pytest.mark.parametrize("address", ["/grants/00000000-0000-0000-0000-000000000001/end/"])
def test_a_grant_that_never_was_is_not_found(house: House, sign_in: SignIn, address: str) -> None:
    assert sign_in(house.operator).get(address).status_code == 404
