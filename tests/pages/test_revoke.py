"""Revoking a constraint and accepting an amended one in the console: what is shown, what ends, and what is refused."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.test import Client

from accounts.rights import Right, grant_right
from approvals.models import Attempt, Request, RequestState
from runs import actions
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import State
from runs.models import PlanVersion, Run, Statement
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.people import House, advance, assert_replays
from tests.runs.test_planning import codes
from tests.runs.test_statements import say, texts
from tests.runs.test_withdrawal import WHY, add, amend

HOSTILE = "Pay\u202e by <script>alert(1)</script> day\u200b 白天付款"


@pytest.fixture
def revokers(house: House) -> Client:
    """The operator may also hold and revoke constraints of the agent."""
    for right in (Right.MANAGE_POLICIES, Right.REVOKE_CONSTRAINTS):
        grant_right(to=house.operator, right=right, obj=house.agent, actor=None, now=database_now())
    client = Client()
    client.force_login(house.operator, backend="django.contrib.auth.backends.ModelBackend")
    return client


def address(run: Run, what: str = "revoke", number: int = 2) -> str:
    return f"/runs/{run.pk}/constraints/{number}/{what}/"


def sends(page: Node, what: str = "revoke") -> dict[str, str]:
    return form_of(page, testid=f"{what}-form").sends()


def test_what_is_announced_is_what_becomes_invalid(
    house: House, world: World, sign_in: SignIn, revokers: Client
) -> None:
    add(house, house.operator, HOSTILE)
    runs = [house.waiting("1"), house.approved("2"), house.start("3")]
    line = read(revokers.get(f"/runs/{runs[0].pk}/")).one("a", href=address(runs[0]))
    assert "Revoke C-2" in line.text
    page = read(revokers.get(address(runs[0])))
    assert "3 runs, 2 plans, 1 request for approval and 1 approval" in page.part("counts").text
    assert "The request to approve plan v1 is voided." in page.part("impact").text
    assert "pay in bank (cannot be undone)" in page.part("impact").text
    form = sends(page)
    assert "scope" not in form

    done = revokers.post(
        address(runs[0]), {**form, "scope": "everywhere", "reason": WHY, "phrase": "C-2"}, follow=True
    )

    assert "revoked everywhere" in read(done).part("result").text
    assert "Withdrawn by Operator." in read(done).text, "before the run is told"
    asked = read(sign_in(house.approver).get(f"/runs/{runs[0].pk}/plan/1/review/")).text
    assert "Not available: a constraint was withdrawn or amended at its source since" in asked
    actions.mark_constraints(10)
    assert [codes(assert_replays(run)) for run in runs] == [["constraint_withdrawn"]] * 3
    assert PlanVersion.objects.filter(voided_seq__isnull=False).count() == 2
    assert Request.objects.filter(state=RequestState.VOIDED).count() == 2
    shown = read(revokers.get(f"/runs/{runs[0].pk}/")).text
    assert f"Withdrawn by Operator, event {load(runs[0].pk).constraints[1].withdrawn.seq}" in shown  # type: ignore[union-attr]
    assert "Restart as a new run" in shown


def test_for_this_run_only_nothing_else_ends(house: House, world: World, revokers: Client) -> None:
    add(house, house.operator)
    run, other = house.approved("1"), house.approved("2")
    form = sends(read(revokers.get(address(run))))

    done = revokers.post(address(run), {**form, "scope": "here", "reason": WHY, "phrase": "c-2"}, follow=True)

    assert "revoked for this run" in read(done).part("result").text
    assert codes(assert_replays(run)) == ["constraint_withdrawn"]
    assert Statement.objects.count() == 1
    assert advance(other).state is State.SUCCEEDED
    assert "Nothing to revoke here" in read(revokers.get(address(run))).text


@pytest.mark.parametrize(
    ("typed", "field"),
    [({"scope": ""}, "scope"), ({"reason": "no"}, "reason"), ({"phrase": "C-3"}, "phrase")],
)
def test_an_incomplete_form_loses_nothing(
    house: House, revokers: Client, typed: dict[str, str], field: str
) -> None:
    add(house, house.operator)
    run = house.waiting()
    form = {
        **sends(read(revokers.get(address(run)))),
        "scope": "here",
        "reason": WHY,
        "phrase": "C-2",
    } | typed
    answer = revokers.post(address(run), form)
    page = read(answer)
    assert answer.status_code == 422
    assert len(page.all("a", href=f"#field-{field}")) == 1
    assert sends(page)["reason"] == form["reason"]
    assert load(run.pk).constraints[1].stands
    assert Attempt.objects.get().action == "revoke_constraint"


@pytest.mark.parametrize("scope", ["here", "everywhere"])
def test_where_the_impact_changed_nothing_is_revoked(house: House, revokers: Client, scope: str) -> None:
    add(house, house.operator)
    run = house.waiting("1")
    form = {**sends(read(revokers.get(address(run)))), "scope": scope, "reason": WHY, "phrase": "C-2"}
    if scope == "here":
        house.decide(run, house.approver)
    else:
        house.start("2")

    answer = revokers.post(address(run), form)

    conflict = read(answer).part("conflict").text
    assert answer.status_code == 409
    if scope == "here":
        assert "The approval of plan v1 by Approver is voided." in conflict
    else:
        assert "1 run, 1 plan" in conflict and "2 runs, 1 plan" in conflict
    assert load(run.pk).constraints[1].stands and Statement.objects.count() == 1
    assert WHY in read(answer).text


def test_who_may_not_is_told_who_can(house: House, world: World, sign_in: SignIn, revokers: Client) -> None:
    add(house, house.operator)
    run = house.waiting()
    everybodys = say(house, "For all.", ref="held/ALL", kind="tenant")
    later = house.waiting("2")
    viewer = sign_in(house.viewer)
    assert "Operator" in read(viewer.get(address(run))).part("why-not").text
    form = sends(read(revokers.get(address(run)))) | {"scope": "here", "reason": WHY, "phrase": "C-2"}
    assert viewer.post(address(run), form).status_code == 403
    assert sign_in(house.stranger).get(address(run)).status_code == 404
    page = read(revokers.get(address(later, number=3)))
    assert page.all("input", value="everywhere") == [] and everybodys.ref.startswith("held/")
    assert revokers.get(address(run, number=9)).status_code == 404
    code = read(revokers.get(address(run, number=1)))
    assert "is not held in this console" in code.part("revoke-form").text


def test_the_new_text_is_read_beside_the_old_one_and_accepted(
    house: House, world: World, revokers: Client
) -> None:
    held_one = add(house, house.operator, "Pay open orders by day.")
    run = house.approved()
    assert "Nothing to accept" in read(revokers.get(address(run, "accept"))).text
    amend(house.operator, held_one, "Pay open orders by night.")
    actions.mark_constraints(10)
    shown = read(revokers.get(f"/runs/{run.pk}/"))
    assert "Its source says now, in version 2: “Pay open orders by night.”" in shown.text
    assert len(shown.all("a", href=address(run, "accept"))) == 2
    assert "Accept the new text" in read(revokers.get(f"/runs/{run.pk}/decide/")).part("accept-instead").text
    page = read(revokers.get(address(run, "accept")))
    assert page.part("difference").one("ins").text == "+ added: night"
    assert page.part("difference").one("del").text == "\N{MINUS SIGN} removed: day"
    form = sends(page, "accept")
    assert revokers.post(address(run, "accept"), {**form, "reason": "ok"}).status_code == 422

    done = revokers.post(address(run, "accept"), {**form, "reason": WHY}, follow=True)

    assert "accepted for this run" in read(done).part("result").text
    assert (texts(run), assert_replays(run).state) == (["Pay open orders by night."], State.PLANNING)
    assert revokers.post(address(run, "accept"), {**form, "reason": WHY}).status_code == 302
    again = {**form, "reason": WHY, "submission": str(uuid4())}
    assert revokers.post(address(run, "accept"), again).status_code == 409
