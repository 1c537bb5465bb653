"""The page of constraints held here: add, amend, withdraw, with what rests on each and how far runs were told."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import Membership, User
from accounts.rights import Right, grant_right
from approvals.models import Attempt
from runs import actions
from runs.clock import database_now
from runs.ledger import load
from runs.models import Statement
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.people import House
from tests.runs.test_planning import codes
from tests.runs.test_statements import texts
from tests.runs.test_withdrawal import WHY, add

HOSTILE = "Pay\u202e by <script>alert(1)</script> day\u200b 白天付款"


@pytest.fixture
def manager(house: House) -> Client:
    for right in (Right.MANAGE_POLICIES, Right.REVOKE_CONSTRAINTS):
        grant_right(to=house.operator, right=right, obj=house.tenant, actor=None, now=database_now())
    client = Client()
    client.force_login(house.operator, backend="django.contrib.auth.backends.ModelBackend")
    return client


def sends(page: Node, what: str) -> dict[str, str]:
    return form_of(page, testid=f"{what}-form").sends()


def page_of(row: Statement) -> str:
    return f"/constraints/{row.ref.removeprefix('held/')}/"


def test_one_is_added_amended_and_withdrawn(house: House, world: World, manager: Client) -> None:
    form = sends(read(manager.get("/constraints/")), "add")
    typed = {
        "place": f"agent-{house.agent.pk}",
        "name": "hours",
        "text": HOSTILE,
        "predicate": "",
        "reason": WHY,
    }
    made = manager.post("/constraints/", {**form, **typed}, follow=True)
    assert "It was recorded" in read(made).part("result").text
    held_one = Statement.objects.get()
    assert (held_one.text, held_one.kind) == (HOSTILE, "policy")
    run = house.waiting()
    assert texts(run) == [HOSTILE]

    page = read(manager.get(page_of(held_one)))
    assert "1 run, 1 plan, 1 request" in page.part("impact").text
    form = {**sends(page, "amend"), "step": "amend", "text": "Pay at night.", "reason": WHY}
    amended = read(manager.post(page_of(held_one), form, follow=True))
    assert "0 of 1 runs were told of it." in amended.part("progress").text
    actions.mark_constraints(10)
    assert codes(load(run.pk)) == ["constraint_amended"]
    assert "1 of 1 runs were told of it." in read(manager.get("/constraints/")).part("held").text

    page = read(manager.get(page_of(held_one)))
    form = {**sends(page, "amend"), "step": "withdraw", "reason": WHY}
    ended = read(manager.post(page_of(held_one), form, follow=True))
    assert not ended.all("form", **{"data-testid": "amend-form"})
    assert ended.part("history").text.count("Version") == 3
    actions.mark_constraints(10)
    assert codes(load(run.pk)) == ["constraint_amended", "constraint_withdrawn"]


def test_what_changed_meanwhile_is_shown_and_nothing_is_recorded(house: House, manager: Client) -> None:
    held_one = add(house, house.operator)
    form = {**sends(read(manager.get(page_of(held_one))), "amend"), "step": "withdraw", "reason": WHY}
    house.start()
    answer = manager.post(page_of(held_one), form)
    assert answer.status_code == 409
    assert "0 runs" in read(answer).part("conflict").text and "1 run," in read(answer).part("conflict").text
    assert Statement.objects.count() == 1 and Attempt.objects.get().refusal == "stale"
    wrong = manager.post(page_of(held_one), {**form, "reason": "no"})
    assert Attempt.objects.latest("pk").refusal == "form"
    assert wrong.status_code == 422 and read(wrong).one("a", href="#field-reason").text


def test_who_may_only_look_is_told_who_can_and_a_stranger_sees_nothing(
    house: House, sign_in: SignIn, manager: Client
) -> None:
    held_one = add(house, house.operator)
    viewer, stranger = sign_in(house.viewer), sign_in(house.stranger)
    assert held_one.name in read(viewer.get("/constraints/")).part("held").text
    assert "Operator" in read(viewer.get(page_of(held_one))).part("why-not").text
    form = {**sends(read(manager.get(page_of(held_one))), "amend"), "step": "withdraw", "reason": WHY}
    assert viewer.post(page_of(held_one), form).status_code == 403
    assert stranger.get(page_of(held_one)).status_code == 404
    assert held_one.text not in stranger.get("/constraints/").content.decode()
    typed = {"place": f"agent-{house.agent.pk}", "name": "n", "text": "t", "predicate": "", "reason": WHY}
    assert stranger.post("/constraints/", {**typed, "submission": form["submission"]}).status_code == 422
    assert Statement.objects.count() == 1


def test_every_refused_form_about_constraints_is_kept_where_it_belongs(
    house: House, sign_in: SignIn, manager: Client
) -> None:
    held_one = add(house, house.operator)
    form = {"place": f"agent-{house.agent.pk}", "name": "n", "text": "t", "predicate": "", "reason": WHY}
    sent = [
        (manager, "/constraints/", {**form, "reason": "no"}, 422, "form", "add_constraint"),
        (manager, "/constraints/", {**form, "place": ""}, 422, "form", "add_constraint"),
        (manager, page_of(held_one), {"step": "amend", "text": "", "reason": WHY}, 422, "form", "amend_constraint"),
        (manager, page_of(held_one), {"step": "?"}, 422, "form", "constraint"),
        (sign_in(house.viewer), "/constraints/", form, 403, "not_allowed", "add_constraint"),
        (sign_in(house.viewer), "/constraints/", {**form, "reason": ""}, 403, "not_allowed", "add_constraint"),
        (sign_in(house.viewer), page_of(held_one), {"step": "withdraw"}, 403, "not_allowed", "revoke_constraint"),
    ]  # fmt: skip
    for client, url, typed, status, refusal, action in sent:
        assert client.post(url, {**typed, "submission": str(uuid4())}).status_code == status, (url, typed)
        kept = Attempt.objects.latest("pk")
        assert (kept.refusal, kept.action, kept.tenant) == (refusal, action, house.tenant)
    assert Attempt.objects.count() == len(sent) and Statement.objects.count() == 1
    sign_in(house.stranger).post("/constraints/", {**form, "submission": str(uuid4())})
    theirs = Attempt.objects.get(person=house.stranger)
    assert theirs.tenant != house.tenant and house.agent.title not in theirs.subject


def test_the_list_is_one_query_and_one_for_all_that_runs_were_told(
    house: House, sign_in: SignIn, manager: Client
) -> None:
    """However many are held, and for whatever: each row would else ask for the reader's rights."""
    run = house.start()
    grant_right(to=house.operator, right=Right.REVISE_GOALS, obj=run, actor=None, now=database_now())
    viewer, places = sign_in(house.viewer), (house.agent, house.tenant, run)

    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert viewer.get("/constraints/").status_code == 200
        return len(queries)

    for place in places:
        add(house, house.operator, place=place)
    once = asked()
    for _ in range(3):
        for place in places:
            add(house, house.operator, place=place)
    assert read(viewer.get("/constraints/")).part("held").text.count("hours") == 12
    assert asked() == once


def test_who_reads_the_whole_audit_log_reads_the_constraints_that_it_names(
    house: House, sign_in: SignIn
) -> None:
    grant_right(
        to=house.operator, right=Right.MANAGE_POLICIES, obj=house.tenant, actor=None, now=database_now()
    )
    held_one = add(house, house.operator)
    auditor = User.objects.create_user(username="auditor", display_name="Auditor")
    Membership.objects.create(user=auditor, tenant=house.tenant)
    assert sign_in(auditor).get(page_of(held_one)).status_code == 404
    grant_right(to=auditor, right=Right.SEE_AUDIT, obj=house.tenant, actor=None, now=database_now())
    page = sign_in(auditor).get(page_of(held_one))
    assert held_one.text in page.content.decode() and not read(page).all(
        "form", **{"data-testid": "amend-form"}
    )
