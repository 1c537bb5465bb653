"""Reviewing a plan: what is shown is what is decided on, and every way in which a decision is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier, Thread
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client

from accounts.rights import Right, grant_right, withdraw_right
from approvals.models import Attempt, Decision, Verdict
from runs import actions
from runs.affected import impact
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import State
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.people import House, advance, assert_replays


def address(run: Run, version: int = 1) -> str:
    return f"/runs/{run.pk}/plan/{version}/review/"


def form(client: Client, run: Run) -> dict[str, str]:
    return form_of(read(client.get(address(run))), testid="decision-form").sends()


def approval(client: Client, run: Run) -> dict[str, str]:
    """The form, filled in to approve."""
    return {**form(client, run), "decision": "approve", "phrase": "250.00 2000"}


def refused(house: House, answer: Any, status: int, code: str) -> Node:
    """The page of a refusal, after looking that nothing was decided and the attempt was kept."""
    assert answer.status_code == status
    assert Attempt.objects.latest("at").refusal == code
    return read(answer)


def test_what_is_shown_is_the_whole_stored_plan(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    plan = load(run.pk).plan
    assert plan is not None

    page = read(sign_in(house.approver).get(address(run)))

    shown = page.part("exec-list").text
    for step in plan.plan.steps:
        for name, value in json.loads(step.arguments).items():
            assert name in shown and value in shown
        assert step.operation_id in shown
    assert form_of(page, testid="decision-form").sends()["digest"] == plan.digest
    assert "exactly these 2 changes. 1 of them cannot be undone." in page.part("exec-summary").text
    assert "makes another version, or hands the run to a person." in page.part("decision-form").text
    html = sign_in(house.approver).get(address(run)).content.decode()
    assert html.index('data-testid="exec-list"') < html.index('data-testid="agent-claim"')


def test_nothing_is_chosen_and_sending_nothing_says_so(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    page = read(client.get(address(run)))
    assert not [radio for radio in page.all("input", type="radio") if "checked" in radio.attrs]

    answer = client.post(address(run), form(client, run))

    wrong = refused(house, answer, 422, "form")
    assert wrong.one("title").text.startswith("Error: ")
    assert "autofocus" in wrong.part("errors").attrs
    assert wrong.part("errors").one("a").attrs["href"] == "#field-decision"
    assert len(wrong.all(id="field-decision")) == 1


def test_approving_runs_it(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.approver)

    answer = client.post(address(run), approval(client, run), follow=True)

    assert "You approved plan v1." in read(answer).part("result").text
    assert "Nothing was sent by this." in read(answer).part("result").text
    assert world.calls == []
    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:2000") == 1


def test_the_phrase_forgives_blanks_and_no_other_phrase_does(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    sent = {**approval(client, run), "reason": "all is well"}

    for typed in ("", "50.00 1042", "250.00", "yes"):
        page = refused(house, client.post(address(run), {**sent, "phrase": typed}), 422, "form")
        assert "The phrase does not fit: type 250.00 2000" in page.part("errors").text
        assert page.one("textarea").text == "all is well"
    assert Decision.objects.count() == 0
    assert client.post(address(run), {**sent, "phrase": "  250.00   2000 "}).status_code == 302


@pytest.mark.parametrize("decision", ["reject", "ask"])
def test_rejecting_and_asking_need_words(house: House, sign_in: SignIn, decision: str) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    sent = {**form(client, run), "decision": decision}

    short = client.post(address(run), {**sent, "reason": "too short"})
    enough = client.post(address(run), {**sent, "reason": "the supplier is another one"})

    assert (short.status_code, enough.status_code) == (422, 302)
    assert Decision.objects.get().verdict == decision
    assert_replays(run)


def test_the_other_approver_was_first(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    sent = {**approval(client, run), "reason": "the amount fits the order"}
    house.decide(run, house.second, Verdict.REJECT, "amount above the cap")

    answer = client.post(address(run), sent)

    page = refused(house, answer, 409, "conflict")
    panel = page.part("conflict").text
    assert "was not recorded and nothing was sent" in panel
    assert "Second rejected plan v1. “amount above the cap”" in panel
    assert "plan v1, waiting for approval" in panel and "plan v1: rejected, by Second at" in panel
    assert "autofocus" in page.part("conflict").one("h2").attrs
    assert page.one("textarea").text == "the amount fits the order"
    assert not [radio for radio in page.all("input", type="radio") if "checked" in radio.attrs]
    assert not page.one("form", data_testid="decision-form").all("button", type="submit")
    assert Attempt.objects.get().person == house.approver
    assert world.calls == []


def test_what_does_not_touch_the_plan_is_no_conflict(house: House, sign_in: SignIn) -> None:
    """A refused attempt of somebody else, and a later look at the run, change nothing that is decided on."""
    run, client = house.waiting(), sign_in(house.approver)
    sent = approval(client, run)
    sign_in(house.second).post(address(run), {})
    sent["run_seq"] = "1"

    assert client.post(address(run), sent).status_code == 302


@contextmanager
def _unguarded() -> Iterator[Any]:
    """Tampering past the triggers, as somebody with the database in hand could."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        try:
            yield cursor
        finally:
            cursor.execute("SET session_replication_role = DEFAULT")


PLAN = "UPDATE runs_event SET body = replace(body, {}) WHERE type = 'PlanProposed'"
CONDITIONS = "UPDATE approvals_request SET conditions = replace(conditions, {})"
EXPIRY = "UPDATE approvals_request SET expires_at = expires_at {} interval '1 day'"
#: What is changed: (how, and back again).
TAMPER = {
    "one byte of the plan": (PLAN.format("'250.00', '950.00'"), PLAN.format("'950.00', '250.00'")),
    "the resource version": (
        CONDITIONS.format("'\"v1\"', '\"v2\"'"),
        CONDITIONS.format("'\"v2\"', '\"v1\"'"),
    ),
    "the policy": (
        CONDITIONS.format("'policy_version\":\"1', 'policy_version\":\"2'"),
        CONDITIONS.format("'policy_version\":\"2', 'policy_version\":\"1'"),
    ),
    "the expiry": (EXPIRY.format("+"), EXPIRY.format("-")),
}


@pytest.mark.parametrize("what", TAMPER)
def test_what_changed_between_page_and_decision_refuses_it(house: House, sign_in: SignIn, what: str) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    sent = approval(client, run)
    with _unguarded() as cursor:
        cursor.execute(TAMPER[what][0])
        assert cursor.rowcount == 1

    answer = client.post(address(run), sent)

    refused(house, answer, 409, "stale")
    assert Decision.objects.count() == 0
    with _unguarded() as cursor:
        cursor.execute(TAMPER[what][1])


def test_after_its_time_nothing_is_approved(house: House, sign_in: SignIn, clock: Clock) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    sent = {**approval(client, run), "reason": "all is well here"}
    clock.move(timedelta(minutes=1))

    answer = client.post(address(run), sent)

    page = refused(house, answer, 409, "expired")
    assert "Nothing was approved" in page.part("conflict").text
    assert page.one("textarea").text == "all is well here"
    assert Decision.objects.count() == 0


def test_a_double_click_decides_once(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    sent = approval(client, run)

    answers = in_parallel(lambda: sign_in(house.approver).post(address(run), sent))

    assert [answer.status_code for answer in answers] == [302, 302]
    assert answers[0]["Location"] == answers[1]["Location"]
    assert Decision.objects.count() == 1
    page = read(client.get(address(run)))
    assert "Approver approved it at" in page.part("decided").text
    assert not page.one("main").all("form")
    assert_replays(run)


def test_one_forms_id_sent_at_once_about_two_runs_decides_one(house: House, sign_in: SignIn) -> None:
    runs, client = [house.waiting("2000"), house.waiting("3000")], sign_in(house.approver)
    sent = {**form(client, runs[0]), "decision": "reject", "reason": "the supplier is another one"}
    forms = [(run, {**form(client, run), **sent, **_shown(client, run)}) for run in runs]

    answers = in_parallel(lambda: sign_in(house.approver).post(*_next(forms)))

    assert sorted(answer.status_code for answer in answers) == [302, 400]
    assert Decision.objects.count() == 1 and Attempt.objects.get().refusal == "submission_reused"


def _shown(client: Client, run: Run) -> dict[str, str]:
    return {name: value for name, value in form(client, run).items() if name in ("digest", "conditions")}


def _next(forms: list[tuple[Run, dict[str, str]]]) -> tuple[str, dict[str, str]]:
    run, sent = forms.pop()
    return address(run), sent


TWO = '{"rules": [{"name": "two", "when": "true", "needed": 2}]}'


def test_a_form_that_was_recorded_is_not_called_refused_when_it_comes_again_after_a_change(
    house: House, sign_in: SignIn
) -> None:
    run, client = _of_two(house), sign_in(house.approver)
    sent = approval(client, run)
    first = client.post(address(run), sent)
    _release(house, TWO.replace("2", "3"))

    again = client.post(address(run), sent)

    assert (first.status_code, again.status_code) == (302, 302) and again["Location"] == first["Location"]
    assert Decision.objects.count() == 1 and not Attempt.objects.exists()
    late = client.post(address(run), {**sent, "submission": str(uuid4())})
    assert "policy version: payer/held/2" in refused(house, late, 409, "stale").part("conflict").text


def test_one_of_two_who_lost_the_right_is_named_to_the_second(house: House, sign_in: SignIn) -> None:
    run = _of_two(house)
    house.decide(run, house.approver)
    client = sign_in(house.second)
    sent = approval(client, run)
    withdraw_right(
        to=house.approver, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now()
    )

    page = refused(house, client.post(address(run), sent), 409, "stale")

    conflict = page.part("conflict").text
    assert "an approval by Approver that counts" in conflict
    assert "Approver, who approved, lost the right “Approve plans”." in conflict
    assert load(run.pk).state is State.WAITING_APPROVAL


def _of_two(house: House) -> Run:
    _release(house, TWO)
    return house.waiting()


def _release(house: House, text: str) -> None:
    grant_right(
        to=house.operator, right=Right.MANAGE_POLICIES, obj=house.agent, actor=None, now=database_now()
    )
    release = {"person": house.operator, "agent": house.agent, "reason": "as agreed"}
    kept = actions.add_policy(**release, text=text, submission=uuid4())  # type: ignore[arg-type]
    seen = impact(house.agent, kept.number).digest
    actions.release_policy(**release, number=kept.number, seen=seen, submission=uuid4())  # type: ignore[arg-type]


def in_parallel(act: Any) -> list[Any]:
    """Two at once, each on a connection of its own."""
    barrier, answers = Barrier(2), []

    def one() -> None:
        barrier.wait(5)
        try:
            answers.append(act())
        finally:
            connection.close()

    threads = [Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(answers) == 2
    return answers


def test_one_who_may_only_look_and_a_stranger(house: House, world: World, sign_in: SignIn) -> None:
    run = house.waiting()
    sent = approval(sign_in(house.approver), run)
    watching, foreign = sign_in(house.viewer), sign_in(house.stranger)

    why = read(watching.get(address(run))).part("why-not").text
    assert "Viewer does not have the right “Approve plans” here. People who can: Approver, Second." in why
    page = refused(
        house, watching.post(address(run), {**sent, "submission": str(uuid4())}), 403, "not_allowed"
    )
    assert "Approver, Second" in page.text
    assert foreign.get(address(run)).status_code == foreign.post(address(run), sent).status_code == 404
    assert Decision.objects.count() == 0


def test_a_right_lost_since_the_page_refuses(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    sent = approval(client, run)
    withdraw_right(
        to=house.approver, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now()
    )

    refused(house, client.post(address(run), sent), 403, "not_allowed")


def test_a_second_yes_is_told_that_it_was_not_needed(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.approver)
    sent = approval(client, run)
    house.decide(run, house.second)

    answer = client.post(address(run), sent, follow=True)

    assert "was not needed" in read(answer).part("result").text
    assert_replays(run)


def test_an_approval_that_was_voided_says_what_changed(house: House, world: World, sign_in: SignIn) -> None:
    run = house.approved()
    world.versions["2000"] = "v2"
    assert advance(run).state is State.WAITING_APPROVAL

    page = read(sign_in(house.approver).get(f"/runs/{run.pk}/"))

    (first,) = [x for x in page.all("li", data_testid="approval") if x.attrs["data-state"] == "voided"]
    assert "No longer valid since" in first.text
    assert "order:2000 changed from version v1 to version v2" in first.text
    assert f"/runs/{run.pk}/plan/1/review/" not in [a.attrs["href"] for a in page.all("a")]
    assert "Review plan v2" in page.part("next-safe-action").text


def test_an_approver_who_lost_the_right_is_named(house: House, world: World, sign_in: SignIn) -> None:
    run = house.approved()
    withdraw_right(
        to=house.approver, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now()
    )
    assert advance(run).state is State.WAITING_APPROVAL

    page = read(sign_in(house.second).get(f"/runs/{run.pk}/"))

    assert "Approver, who approved, lost the right “Approve plans”." in page.text
    assert "Review plan v1" in page.part("next-safe-action").text
    assert world.calls == []
