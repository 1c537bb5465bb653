"""What cannot be undone asks for a recent sign-in: in the action, on the page, and with what was typed kept."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from allauth.mfa.totp.internal.auth import TOTP
from django.conf import settings
from django.test import Client

from accounts import models
from accounts.reauthentication import ReauthenticationNeeded
from approvals.models import Attempt, Decision, Request, Verdict
from runs import actions
from runs.clock import database_now
from runs.models import Run
from runs.views.frame import SIGNED_IN_AT
from tests.accounts.world import code
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.people import PASSWORD, House, assert_replays

LIMIT: timedelta = settings.HANDOFF_DURATIONS.sign_in_again
FACTOR = "JBSWY3DPEHPK3PXP"
REASON = "amount and order fit, seen with the supplier"


def aged(client: Client) -> Client:
    """As if they had signed in a little too long ago."""
    session = client.session
    session[SIGNED_IN_AT] = (database_now() - LIMIT - timedelta(seconds=1)).isoformat()
    session.save()
    return client


def review(run: Run) -> str:
    return f"/runs/{run.pk}/plan/1/review/"


def approve(client: Client, run: Run) -> dict[str, str]:
    """The review form as it stands, filled in to approve."""
    form = form_of(read(client.get(review(run))), testid="decision-form").sends()
    return {**form, "decision": "approve", "phrase": "250.00 2000", "reason": REASON}


@pytest.mark.parametrize("factor", [False, True], ids=["password", "password and code"])
def test_an_old_sign_in_is_renewed_and_what_was_typed_is_kept(
    house: House, world: World, sign_in: SignIn, factor: bool
) -> None:
    run = house.waiting()
    if factor:
        TOTP.activate(house.approver, FACTOR)
    client = aged(sign_in(house.approver))

    answer = client.post(review(run), approve(client, run))

    again = answer["Location"]
    assert answer.status_code == 302 and again.startswith("/login/again/?next=")
    kept = Attempt.objects.get()
    assert (kept.refusal, kept.action, kept.person, kept.reason) == (
        "sign_in_too_old", "decide approve", house.approver, REASON,
    )  # fmt: skip
    assert not Decision.objects.exists() and world.calls == []
    page = read(client.get(again))
    assert "Nothing was recorded yet" in page.text
    assert len(page.all("input", name="code")) == int(factor)

    assert client.post(again, {"password": "wrong"}).status_code == 422
    if factor:
        assert client.post(again, {"password": PASSWORD}).status_code == 422
    proof = {"password": PASSWORD, **({"code": code(FACTOR)} if factor else {})}
    back = client.post(again, proof)

    assert back["Location"] == review(run)
    form = read(client.get(back["Location"]))
    assert form.one("textarea", name="reason").text == REASON
    assert not [radio for radio in form.all("input", type="radio") if "checked" in radio.attrs]
    assert not Decision.objects.exists()
    assert client.post(review(run), approve(client, run)).status_code == 302
    assert Decision.objects.get().reason == REASON
    assert models.SignIn.objects.latest("pk").outcome == "signed_in_again"
    assert_replays(run)


def test_what_was_typed_comes_back_once_and_on_its_own_page(house: House, sign_in: SignIn) -> None:
    run, other = house.waiting(), house.waiting("2001")
    client = aged(sign_in(house.approver))
    client.post(review(run), approve(client, run))

    assert read(client.get(review(other))).one("textarea", name="reason").text == ""
    assert read(client.get(review(run))).one("textarea", name="reason").text == REASON
    assert read(client.get(review(run))).one("textarea", name="reason").text == ""


def test_why_cannot_i_says_that_one_has_to_sign_in_again(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    url = f"/permissions/check/?action=approve_plans&run={run.pk}"
    assert not read(client.get(url)).all(data_testid="again")

    page = read(aged(client).get(url))

    assert "Yes: Approver can do this now" in page.text and "Sign in again first" in page.part("again").text
    back = client.post(page.part("again").one("a").attrs["href"], {"password": PASSWORD})
    assert back["Location"] == url and not read(client.get(url)).all(data_testid="again")
    asked = f"{url}&person={house.second.pk}"
    assert not read(aged(client).get(asked)).all(data_testid="again")


def test_rejecting_takes_no_recent_sign_in(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    client = aged(sign_in(house.approver))
    assert client.post(review(run), {**approve(client, run), "decision": "reject"}).status_code == 302
    assert Decision.objects.get().verdict == Verdict.REJECT


@pytest.mark.parametrize("late", [None, LIMIT + timedelta(seconds=1)], ids=["never", "too long ago"])
def test_the_action_itself_refuses_an_old_sign_in(house: House, late: timedelta | None) -> None:
    run = house.waiting()

    def decide(signed_in_at: datetime | None) -> object:
        request = Request.objects.get(subject__startswith=run.pk)
        return actions.decide_plan(
            person=house.approver, run_id=run.pk, version=1, verdict=Verdict.APPROVE, reason="",
            digest=request.digest, conditions_digest=request.conditions_digest, submission=uuid4(),
            signed_in_at=signed_in_at,
        )  # fmt: skip

    with pytest.raises(ReauthenticationNeeded) as refused:
        decide(None if late is None else database_now() - late)

    assert refused.value.limit == LIMIT and not Decision.objects.exists()
    assert_replays(run)
    decide(database_now() - LIMIT + timedelta(minutes=1))
    assert Decision.objects.exists()
