"""Many people decide in the console at the same moment, and bare answers, and a quorum that begins anew."""

from __future__ import annotations

from collections import Counter
from threading import Barrier, Thread
from uuid import uuid4

import pytest
from django.db import connections
from django.test import Client

from accounts.models import Membership, User
from accounts.rights import Right, grant_right
from approvals.models import Attempt, Decision, Request
from runs.clock import database_now
from runs.ledger import load
from runs.machine.events import Cause, Reason
from runs.machine.state import State
from runs.pages import words
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.pages.test_review import address, approval, form, refused
from tests.people import House, advance, assert_replays
from tests.runs.conftest import script
from tests.runs.scripted import Script, pay, plan

__all__ = ["script"]
EACH_WAY = 10


def crowd(house: House, number: int) -> list[User]:
    """So many more approvers."""
    people = []
    for n in range(number):
        person = User.objects.create(username=f"crowd{n}", display_name=f"Crowd {n}")
        Membership.objects.create(user=person, tenant=house.tenant)
        grant_right(to=person, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now())
        people.append(person)
    return people


def test_twenty_people_ten_each_way_make_one_outcome(house: House, world: World, sign_in: SignIn) -> None:
    run = house.waiting()
    people, told = crowd(house, 2 * EACH_WAY), list[tuple[str, str]]()
    yes = approval(sign_in(house.approver), run)
    no = {**yes, "decision": "reject", "reason": "amount above the cap"}
    gate = Barrier(len(people), timeout=60)

    def decide(client: Client, sent: dict[str, str]) -> None:
        gate.wait()
        try:
            answer = client.post(address(run), {**sent, "submission": str(uuid4())}, follow=True)
            told.append((sent["decision"], _said(answer)))
        finally:
            connections.close_all()

    clients = [sign_in(person) for person in people]
    threads = [Thread(target=decide, args=(c, yes if n % 2 else no)) for n, c in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    won, lost = ("approve", "reject") if Request.objects.get().state == "valid" else ("reject", "approve")
    assert Counter(told) == {
        (won, "recorded"): 1, (won, "not needed"): EACH_WAY - 1, (lost, "conflict"): EACH_WAY,
    }  # fmt: skip
    assert Decision.objects.filter(needed=True).count() == 1
    assert Attempt.objects.filter(refusal="conflict").count() == EACH_WAY
    state = advance(run)
    assert state.state is (State.SUCCEEDED if won == "approve" else State.NEEDS_HUMAN)
    assert world.times("pay:2000") == (won == "approve")


def _said(answer: object) -> str:
    """What the page told this person."""
    page = read(answer)
    if getattr(answer, "status_code", 0) == 409:
        panel = page.part("conflict").text
        assert "was not recorded" in panel and "by Crowd" in panel and " UTC" in panel
        return "conflict"
    return "not needed" if "was not needed" in page.part("result").text else "recorded"


@pytest.mark.parametrize("missing", ["digest", "conditions"])
def test_a_bare_answer_is_no_answer_where_two_plans_wait(house: House, sign_in: SignIn, missing: str) -> None:
    first, second = house.waiting("2000"), house.waiting("2001")
    client = sign_in(house.approver)
    sent = {**form(client, first), "decision": "reject", "reason": "amount above the cap"}
    del sent[missing]

    page = refused(house, client.post(address(first), sent), 400, "form")

    assert "does not say which plan" in page.part("errors").text
    assert page.one("textarea").text == "amount above the cap"
    assert {load(run.pk).state for run in (first, second)} == {State.WAITING_APPROVAL}
    assert Decision.objects.count() == 0


def test_a_quorum_begins_anew_with_another_version_and_says_so(
    house: House, script: Script, sign_in: SignIn
) -> None:
    script.needed, script.proposals = 2, [plan(), plan(pay(amount="40.00"))]
    run = house.waiting()
    house.decide(run, house.approver)
    other = {**form(sign_in(house.second), run), "decision": "ask", "reason": "ten less, please"}
    assert sign_in(house.second).post(address(run), other).status_code == 302
    assert advance(run).state is State.WAITING_APPROVAL

    text = read(sign_in(house.approver).get(address(run, 2))).text

    assert "0 of 2: 1 approval was given for version 1 (Approver), which this replaces." in text
    house.decide(run, house.approver)
    assert assert_replays(run).state is State.WAITING_APPROVAL


def test_words_have_no_empty_subject_no_raw_time_and_leave_ids_alone() -> None:
    short = words.reason_with_evidence(Reason(code="budget_exhausted", evidence="-49.00"))
    late = words.reason_with_evidence(
        Reason(code="deadline_passed", evidence="2026-11-30T07:44:10.123456+00:00")
    )
    moved = words.reason_with_evidence(
        Reason(code="resource_changed", subject="order:7", evidence="v1 -> v2")
    )
    ends = words.cause(Cause(what="policy", subject="", was="a", now="2026-11-30T07:44:10Z"))

    assert short == "The run’s budget does not cover the rest of its plan: 49.00 is missing."
    assert late.replace("\u00a0", " ") == "The run’s deadline has passed: 2026-11-30 07:44:10 UTC."
    assert moved.startswith("order:7 changed again and again")
    assert "T07" not in ends
