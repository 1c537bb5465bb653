"""Adding a constraint to a run, and confirming an inferred one, in the console."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from pytest_django import Settings

from approvals.models import Attempt
from runs import agents
from runs.agents import Infer
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine.state import State
from runs.models import Run, Statement
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.people import House, advance, assert_replays
from tests.runs.scripted import LOOK, SCRIPT, pay, plan

HOSTILE = "No <script>alert(1)</script> mails\u202e to suppliers\u200b"
SAID = {
    "name": "no mails",
    "text": HOSTILE,
    "predicate": 'system != "mail"',
    "reason": "Finance asked for it.",
}


def address(run: Run) -> str:
    return f"/runs/{run.pk}/constraints/add/"


def sends(page: Node, testid: str = "add-form") -> dict[str, str]:
    return form_of(page, testid=testid).sends()


def test_the_audit_log_tells_once_that_one_was_added(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    client.post(address(run), {**sends(read(client.get(address(run)))), **SAID})
    (accepted,) = [r for r in log(run.pk) if isinstance(r.event, e.ConstraintAccepted)]

    for query in ("", f"?run={run.pk}", "?action=add_constraint"):
        audit = client.get(f"/audit/{query}").content.decode()
        assert audit.count("Finance asked for it.") == 1, query
        assert audit.count("no mails") == 1, query
        assert f"{accepted.seq} ConstraintAccepted" in audit
    for kind in ("csv", "jsonl"):
        lines = b"".join(client.get(f"/audit/export.{kind}?run={run.pk}")).decode()
        assert lines.count("Finance asked for it.") == 1, kind


def test_a_constraint_is_added_and_ends_the_plan_made_without_it(
    house: House, world: World, sign_in: SignIn
) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    assert "Add a constraint" in read(client.get(f"/runs/{run.pk}/")).part("who-may-act").text
    page = read(client.get(address(run)))
    assert "Plan v1 loses its validity at once" in page.part("impact").text
    assert "The request to approve plan v1 is voided." in page.part("impact").text
    form = {**sends(page), **SAID}

    done = client.post(address(run), form, follow=True)

    shown = read(done)
    assert "The constraint was added." in shown.part("result").text
    constraints = shown.part("constraints").text
    assert "C-2 no mails" in constraints and "written by a person" in constraints
    assert 'Enforced by code: system != "mail"' in constraints
    state = assert_replays(run)
    assert state.state is State.PLANNING and state.plan is not None and state.plan.voided_seq
    row = Statement.objects.get()
    assert (row.kind, row.run_id, row.by, row.text) == ("person", run.pk, house.operator, HOSTILE)
    again = client.post(address(run), form)  # the same form once more
    assert again.status_code == 302 and Statement.objects.count() == 1 and len(load(run.pk).constraints) == 2
    advance(run)
    refused = [x.event for x in log(run.pk) if isinstance(x.event, e.ProposalRefused)]
    assert {b.name for x in refused for b in x.broken} == {"no mails"} and not world.executed


@pytest.mark.parametrize("wrong, field", [
    ({"text": " "}, "text"), ({"name": ""}, "name"), ({"reason": "short"}, "reason"), ({"text": "x" * 4001}, "text"),
    ({"predicate": "cost <= 4.5"}, "predicate"), ({"predicate": "nothing == 1"}, "predicate"),
    ({"predicate": "system != "}, "predicate"),
])  # fmt: skip
def test_what_cannot_be_one_is_said_and_stays_typed(
    house: House, world: World, sign_in: SignIn, wrong: dict[str, str], field: str
) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    sent = {**sends(read(client.get(address(run)))), **SAID, **wrong}
    answer = client.post(address(run), sent)
    assert answer.status_code == 422
    page = read(answer)
    assert page.one(id=f"error-{field}").text
    for name in SAID.keys() - wrong.keys():
        assert sends(page)[name].strip() == sent[name]
    assert not Statement.objects.exists() and len(load(run.pk).constraints) == 1


def test_it_does_what_the_page_said_or_nothing(house: House, world: World, sign_in: SignIn) -> None:
    run, client = house.waiting(), sign_in(house.operator)
    sent = {**sends(read(client.get(address(run)))), **SAID}
    house.decide(run, house.approver)
    answer = client.post(address(run), sent)
    page = read(answer)
    assert answer.status_code == 409 and "was not added" in page.part("conflict").text
    assert "What Approver approved of plan v1 is voided." in page.text
    assert sends(page)["text"].strip() == HOSTILE
    assert client.post(address(run), {**sent, **sends(page)}).status_code == 302
    assert len(load(run.pk).constraints) == 2


def test_not_by_everybody_and_not_to_a_run_that_is_over(house: House, world: World, sign_in: SignIn) -> None:
    run = house.waiting()
    form = {**sends(read(sign_in(house.operator).get(address(run)))), **SAID}
    viewer = sign_in(house.viewer)
    assert "You may not add a constraint" in read(viewer.get(address(run))).text
    assert viewer.post(address(run), form).status_code == 403 and Attempt.objects.count() == 1
    assert sign_in(house.stranger).get(address(run)).status_code == 404
    house.cancel(run)
    advance(run)
    operator = sign_in(house.operator)
    page = read(operator.get(address(run)))
    assert "This run is over" in page.part("over").text
    assert operator.post(address(run), {**form, "submission": "2" * 32}).status_code == 409
    assert not Statement.objects.exists()


@pytest.fixture
def inferred(house: House, settings: Settings) -> Iterator[Run]:
    """A run whose agent inferred a limit from what it read."""
    settings.HANDOFF_AGENTS = ["tests.runs.scripted:AGENT"]
    agents.registered.cache_clear()
    SCRIPT.reset()
    SCRIPT.needed = 1
    limit = Infer(text=HOSTILE, read=LOOK)
    SCRIPT.proposals = [lambda view: LOOK, plan(pay(), infers=(limit,))]
    run = house.start()
    advance(run)
    yield run
    SCRIPT.reset()


def test_an_inferred_one_says_so_everywhere_until_a_person_confirms_it(
    house: House, world: World, sign_in: SignIn, inferred: Run
) -> None:
    client, run = sign_in(house.operator), f"/runs/{inferred.pk}/"
    unsure = "Inferred by the agent. Not confirmed by a person."
    page = read(client.get(run))
    assert unsure in page.part("constraints").text and "Read in O-1" in page.part("constraints").text
    assert "Confirm C-1" in page.part("who-may-act").text
    told = "Inferred by the agent and not confirmed by a person: C-1."
    assert told in page.part("handoff").text and "Not checked by code: C-1." in page.part("handoff").text
    assert "inferred by the agent, not confirmed by a person" in read(client.get(f"{run}plan/1/review/")).text
    assert unsure in _markdown(client, run)
    form = read(client.get(f"{run}constraints/1/confirm/"))
    assert "Agent says. Not verified." in form.text and "O-1" in form.part("observation").text

    sent = {**sends(form, "confirm-form"), "note": "It stands in the contract."}
    done = read(client.post(f"{run}constraints/1/confirm/", sent, follow=True))

    assert "The constraint was confirmed." in done.part("result").text
    assert "Inferred by the agent. Confirmed by Operator" in done.part("constraints").text
    assert "confirmed C-1, which the agent had inferred." in done.part("timeline").text
    assert unsure not in _markdown(client, run)
    assert client.post(f"{run}constraints/1/confirm/", sent).status_code == 302
    again = client.post(f"{run}constraints/1/confirm/", {**sent, "submission": "3" * 32})
    assert again.status_code == 409
    assert client.get(f"{run}constraints/9/confirm/").status_code == 404
    viewer = sign_in(house.viewer)
    assert viewer.post(f"{run}constraints/1/confirm/", {**sent, "submission": "4" * 32}).status_code == 403


def _markdown(client: Client, run: str) -> str:
    return client.get(f"{run}handoff/?format=md").content.decode()
