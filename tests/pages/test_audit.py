"""The audit log: what was recorded and what was refused, for whom."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import DatabaseError, transaction
from django.test import Client
from playwright.sync_api import Browser

from accounts.groups import make_group
from accounts.models import RightChange
from accounts.rights import Right, grant_right, withdraw_right
from approvals.models import Attempt, Decision, Request, Verdict
from console.audit_export import harmless
from runs.clock import database_now
from runs.models import Event, Statement, Submission
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, read
from tests.pages.test_constraints_held import page_of, sends
from tests.pages.test_policies import keep, release
from tests.pages.test_review import address, approval
from tests.people import House
from tests.runs.test_withdrawal import WHY, add, revoke


@pytest.fixture(autouse=True)
def viewer_sees_all(house: House) -> None:
    """The viewer may see the whole log of the organisation."""
    grant_right(to=house.viewer, right=Right.SEE_AUDIT, obj=house.tenant, actor=None, now=database_now())


def entries(page: Node) -> list[str]:
    return [row.text for row in page.one("table").one("tbody").all("tr")]


def test_recorded_and_refused_stand_together(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    sign_in(house.viewer).post(
        address(run), {"decision": "reject", "reason": "I do not like it", "submission": "1" * 32}
    )
    house.decide(run, house.approver, Verdict.REJECT, "amount above the cap")

    page = read(sign_in(house.viewer).get("/audit/"))

    first, second, third = entries(page)[:3]
    assert "Approver" in first and "rejected plan v1. “amount above the cap”" in first and "recorded" in first
    assert "Viewer" in second and "refused the right is missing" in second and "I do not like it" in second
    assert "tried: Reject a plan" in second
    assert "Operator" in third and "started the run" in third


def test_a_decision_that_was_not_needed_is_told_with_what_was_seen_and_from_where(
    house: House, sign_in: SignIn
) -> None:
    run, client = house.waiting(), sign_in(house.second)
    sent = {**approval(client, run), "reason": "agreed by phone"}
    house.decide(run, house.approver)
    assert client.post(address(run), sent).status_code == 302

    for query in ("", f"?action=approve&run={run.pk}&person=Second", "?result=recorded"):
        first = entries(read(sign_in(house.viewer).get(f"/audit/{query}")))[0]
        assert "Second" in first and "approved plan v1, as was decided before: it was not needed." in first
        assert "agreed by phone" in first and "127.0.0.1" in first
        assert sent["digest"] in first.replace(" ", "")
    lines = b"".join(sign_in(house.viewer).get("/audit/export.jsonl?action=approve")).decode().splitlines()
    assert [json.loads(line)["who"] for line in lines[1:]] == ["Second", "Approver"]
    for query in ("?result=refused", "?action=reject", "?person=Second&action=cancel"):
        assert "not needed" not in read(sign_in(house.viewer).get(f"/audit/{query}")).text


def test_filters(house: House, sign_in: SignIn) -> None:
    run, other = house.waiting("1"), house.waiting("2")
    house.decide(run, house.approver, Verdict.REJECT, "amount above the cap")
    client = sign_in(house.viewer)

    def found(query: str) -> int:
        page = read(client.get(f"/audit/?{query}"))
        return len(entries(page)) if page.all("table") else 0

    rights = RightChange.objects.filter(tenant=house.tenant).count()
    assert found("") == 3 + rights
    assert found("person=Approver&action=reject") == 1
    assert found("action=rights") == rights
    assert found("action=rights&person=Viewer") == 2
    assert found("action=rights&result=refused") == 0
    assert found(f"action=rights&run={run.pk}") == 0
    assert found(f"run={other.pk}") == 1
    assert found("action=reject") == 1
    assert found("result=refused") == 0
    assert found("action=nonsense&page=77&person=%00") == 3 + rights


def test_a_stranger_sees_none_of_it(house: House, world: World, sign_in: SignIn) -> None:
    house.decide(house.waiting(), house.approver, Verdict.REJECT, "amount above the cap")

    page = read(sign_in(house.stranger).get("/audit/"))

    assert "to Stranger" in page.text
    assert not any(name in page.one("main").part("rows").text for name in ("Approver", "Viewer", "reject"))


def test_rights_are_told_in_words(house: House, sign_in: SignIn) -> None:
    now = database_now()
    withdraw_right(to=house.second, right=Right.APPROVE_PLANS, obj=house.agent, actor=house.operator, now=now)

    first, *others = entries(read(sign_in(house.viewer).get("/audit/?action=rights")))

    assert "Operator" in first and "withdrew “Approve plans” from Second" in first and "Payer" in first
    assert any("a command" in row and "granted “See runs” to Viewer" in row for row in others)
    assert any("granted “See the whole audit log” to Viewer" in row and "Acme" in row for row in others)


def test_who_may_not_see_the_whole_log_sees_what_they_did_themselves(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    house.decide(run, house.approver, Verdict.REJECT, "amount above the cap")
    sign_in(house.second).post(address(run), {"decision": "approve", "submission": "2" * 32})

    own, theirs = (
        sign_in(person).get("/audit/").content.decode() for person in (house.approver, house.second)
    )

    assert "amount above the cap" in own and "amount above the cap" not in theirs
    assert "started the run" not in own and "tried: Approve a plan" in theirs and "tried:" not in own
    assert "Viewer" not in own + theirs
    for who, kind in ((house.second, "csv"), (house.second, "jsonl")):
        text = b"".join(sign_in(who).get(f"/audit/export.{kind}")).decode()
        assert "amount above the cap" not in text and "tried: Approve a plan" in text


def test_days_are_a_filter_and_an_entry_says_where_it_came_from(house: House, sign_in: SignIn) -> None:
    run, today = house.waiting(), database_now().date()
    client = sign_in(house.approver)
    sent = {"decision": "reject", "reason": "amount above the cap", "submission": str(uuid4())}
    request = Request.objects.get(subject__startswith=run.pk)
    sent |= {"digest": request.digest, "conditions": request.conditions_digest}
    answer = client.post(address(run), sent)
    assert answer.status_code == 302

    (row,) = entries(read(client.get(f"/audit/?action=reject&from={today}&to={today}")))

    assert answer["X-Request-Id"] in row and "127.0.0.1" in row and "console" in row and "PlanRejected" in row
    before, after = today - timedelta(days=1), today + timedelta(days=1)
    for query in (f"to={before}", f"from={after}"):
        assert not read(client.get(f"/audit/?{query}")).all("table")
    assert client.get("/audit/?from=nonsense&to=0001-01-01&verify").status_code == 200


def test_exports_carry_what_was_asked_for_and_no_formula(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    sign_in(house.approver).post(
        address(run), {"decision": "reject", "reason": "=cmd|'/c calc'!A1", "submission": "no id"}
    )
    client = sign_in(house.viewer)

    text = b"".join(client.get(f"/audit/export.csv?result=refused&run={run.pk}")).decode()
    rows = list(csv.reader(io.StringIO(text)))
    heads = {row[0]: row[1] for row in rows if row[0].startswith("# ")}
    assert json.loads(heads["# filter"]) == {"run": run.pk, "result": "refused"}
    assert heads["# zone"] == "UTC" and json.loads(heads["# tenants"]) == ["acme"]
    columns, entry = rows[len(heads)], rows[len(heads) + 1]
    found = dict(zip(columns, entry, strict=True))
    assert (
        found["reason"] == "'=cmd|'/c calc'!A1" and found["who"] == "Approver" and found["ip"] == "127.0.0.1"
    )

    lines = [json.loads(x) for x in b"".join(client.get("/audit/export.jsonl?action=start")).splitlines()]
    assert lines[0]["head"]["filter"] == {"action": "start"} and lines[0]["head"]["whole_log_of"] == ["acme"]
    assert [(x["who"], x["on"], x["via"]) for x in lines[1:]] == [("Operator", run.pk, "")]
    assert client.get("/audit/export.xml").status_code == 404
    assert "order" not in b"".join(sign_in(house.stranger).get("/audit/export.jsonl")).decode()


def test_nobody_changes_what_stands_in_the_log_and_its_chains_are_verified(
    house: House, sign_in: SignIn
) -> None:
    run = house.waiting()
    house.decide(run, house.approver, Verdict.REJECT, "amount above the cap")
    sign_in(house.viewer).post(address(run), {"decision": "reject", "submission": "1" * 32})
    page = sign_in(house.viewer).get("/audit/?verify").content.decode()
    assert "Chain verified: the log of the 1 run" in page
    house.cancel(house.waiting("3"))
    for table in (Attempt, Decision, RightChange, Submission, Event):
        for spoil in (
            table._base_manager.all().delete,
            partial(table._base_manager.update, at=database_now()),
        ):
            with pytest.raises(DatabaseError), transaction.atomic():
                spoil()


def held_by_forms(house: House, client: Client) -> Statement:
    """A constraint held for the agent, stated otherwise and withdrawn, each by its form."""
    said = {"place": f"agent-{house.agent.pk}", "name": "hours", "text": "Pay by day.", "reason": WHY}
    client.post("/constraints/", {**sends(read(client.get("/constraints/")), "add"), **said})
    first = Statement.objects.get(name="hours")
    for step in ({"step": "amend", "text": "Pay at night."}, {"step": "withdraw"}):
        form = sends(read(client.get(page_of(first))), "amend")
        assert client.post(page_of(first), {**form, **step, "reason": WHY}).status_code == 302
    return first


def test_what_is_held_is_told_with_what_was_tried_under_the_same_filter(
    house: House, world: World, sign_in: SignIn
) -> None:
    for right in (Right.MANAGE_POLICIES, Right.REVOKE_CONSTRAINTS):
        grant_right(to=house.operator, right=right, obj=house.tenant, actor=None, now=database_now())
    run, client, auditor = house.waiting(), sign_in(house.operator), sign_in(house.viewer)
    first = held_by_forms(house, client)
    form = read(client.get(f"/runs/{run.pk}/constraints/add/")).part("add-form").sends()
    said = {"name": "no mails", "text": "No mails.", "predicate": "", "reason": WHY}
    assert client.post(f"/runs/{run.pk}/constraints/add/", {**form, **said}).status_code == 302
    auditor.post(f"/runs/{run.pk}/constraints/add/", {**form, **said})
    for step in ("amend", "withdraw"):
        auditor.post(page_of(first), {"step": step, "text": "x", "reason": WHY, "submission": str(uuid4())})

    found = {
        action: entries(read(auditor.get(f"/audit/?action={action}")))
        for action in ("add_constraint", "amend_constraint", "revoke")
    }
    (tried, here, held), (not_amended, amended), (not_ended, ended) = found.values()
    assert "tried: Add a constraint to a run" in tried and "refused" in tried
    assert "held the constraint “no mails”" in here and run.pk in here and "console" in here
    assert "held the constraint “hours”" in held and "payer of Acme" in held and WHY in held
    assert "tried: State a constraint otherwise" in not_amended and "tried: Withdraw" in not_ended
    assert "stated the constraint “hours” otherwise" in amended and "saw version 1" in amended
    assert "Text before Pay by day." in amended and "Text afterwards Pay at night." in amended
    assert "withdrew the constraint “hours”" in ended and "saw version 2" in ended and "127.0.0.1" in ended
    page = read(auditor.get(f"/audit/?run={run.pk}&action=add_constraint&result=recorded"))
    assert len(entries(page)) == 1 and page.one("tbody").all(
        "a", href=page_of(Statement.objects.get(run=run))
    )
    own = read(client.get("/audit/?action=amend_constraint")).text
    assert "stated the constraint" in own and "tried:" not in own
    for kind in ("csv", "jsonl"):
        text = b"".join(auditor.get(f"/audit/export.{kind}?action=amend_constraint")).decode()
        assert "stated the constraint “hours” otherwise" in text and "Text before: Pay by day." in text
    for who in (house.stranger, house.approver):
        assert "hours" not in b"".join(sign_in(who).get("/audit/export.jsonl")).decode()


def test_a_constraint_that_is_withdrawn_everywhere_on_the_page_of_a_run_is_about_that_run(
    house: House, world: World, sign_in: SignIn
) -> None:
    for right in (Right.MANAGE_POLICIES, Right.REVOKE_CONSTRAINTS):
        grant_right(to=house.operator, right=right, obj=house.tenant, actor=None, now=database_now())
    held, run = add(house, house.operator), house.waiting()
    revoke(house.operator, held, about=run)

    (row,) = entries(read(sign_in(house.viewer).get(f"/audit/?action=revoke&run={run.pk}")))

    assert "withdrew the constraint “hours”" in row and f"{run.pk} saw" in row
    assert "Held for payer of Acme" in row and "command" in row


def test_added_and_released_policies_are_told(house: House, sign_in: SignIn) -> None:
    grant_right(
        to=house.operator, right=Right.MANAGE_POLICIES, obj=house.agent, actor=None, now=database_now()
    )
    client, auditor = sign_in(house.operator), sign_in(house.viewer)
    make_group(tenant=house.tenant, title="Finance", actor=None, now=database_now())
    url = keep(client)
    assert release(client, url) == release(client, "/policies/payer/0/") == 302
    auditor.post("/policies/payer/new/", {"text": "{}", "reason": WHY, "submission": str(uuid4())})

    tried, added = entries(read(auditor.get("/audit/?action=add_policy")))
    back, released = entries(read(auditor.get("/audit/?action=release_policy")))

    assert "tried: Add a version of a policy" in tried
    assert "added version 1 of the policy" in added and "two pairs of eyes" in added and "127.0.0.1" in added
    assert "released version 1 of the policy" in released and "In force before the agent’s own" in released
    assert "released the agent’s own policy" in back and "In force before version 1" in back
    assert "console" in back and "payer of Acme" in back
    assert not read(auditor.get("/audit/?action=add_policy&result=refused&person=Operator")).all("table")
    text = b"".join(auditor.get("/audit/export.csv?action=release_policy")).decode()
    assert "as decided on Monday" in text and "released version 1" in text
    for who in (house.stranger, house.approver):
        theirs = b"".join(sign_in(who).get("/audit/export.jsonl")).decode()
        assert "of the policy" not in theirs


@pytest.mark.parametrize("cell", ["=1", "+1", "-1", "@x", "\t=1", " =1", "\uff1d1"])
def test_no_cell_begins_like_a_formula(cell: str) -> None:
    assert harmless(cell) == f"'{cell}" and harmless("order-1") == "order-1"


def test_no_attempt_is_shown_as_its_code(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    sent = {"submission": "1" * 32}
    client.post(address(run), sent)
    client.post(f"/runs/{run.pk}/decide/", {**sent, "choice": "drop table"})

    page = read(client.get("/audit/?result=refused"))

    assert {row.split("tried: ")[1].split(" run_")[0] for row in entries(page)} == {
        "Decide",
        "something that no form offers",
    }


@pytest.mark.browser
def test_each_column_can_be_read_on_a_desktop(house: House, sign_in: SignIn, browser: Browser) -> None:
    client = sign_in(house.viewer)
    client.post(address(house.waiting()), {"decision": "reject", "reason": "no", "submission": "1" * 32})
    html = client.get("/audit/").content.decode()

    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_content(html, wait_until="commit")
    page.add_style_tag(path=str(settings.BASE_DIR / "static" / "console.css"))
    boxes = [head.bounding_box() for head in page.locator("table.audit thead th").all()]
    cut = page.locator("table.audit td").evaluate_all(
        "cells => cells.filter(c => c.scrollWidth > c.clientWidth).length"
    )
    context.close()

    assert len(boxes) == 5 and cut == 0
    assert all(box and box["width"] >= 110 for box in boxes)
