"""Changes that people ask for reach the planner as proposals of constraints; the next version says which it takes."""

from __future__ import annotations

from django.test import Client

from approvals.models import Verdict
from runs.ledger import log
from runs.machine import events as e
from runs.machine.state import State
from tests.people import House, advance, assert_replays
from tests.runs.scripted import Script, pay, plan

WANTED = "At most 40.00 for this order."


def test_the_planner_sees_who_asked_for_what_and_the_next_version_says_that_it_keeps_to_it(
    house: House, script: Script
) -> None:
    script.needed = 1
    script.proposals = [plan(pay()), plan(pay(amount="40.00"), takes=(1,))]
    run = house.start()
    advance(run)
    house.decide(run, house.approver, verdict=Verdict.ASK, reason=WANTED)

    state = advance(run)

    (asked,) = script.views[-1].proposed_constraints
    assert (asked.number, asked.text, asked.version) == (1, WANTED, 1)
    assert (asked.by, asked.at) == (house.approver.shown_name, state.requests[0].decisions[0].at)
    assert script.views[-1].advice == ()
    assert state.state is State.WAITING_APPROVAL
    assert [p.takes for p in state.plans] == [(), (1,)]
    assert state.plans[-1].digest == state.requests[-1].digest
    assert_replays(run)

    client = Client()
    client.force_login(house.approver, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(f"/runs/{run.pk}/plan/2/review/").content.decode()
    shown = page[page.index('data-testid="proposed"') :]
    assert shown.index(WANTED) < shown.index("This version keeps to it.")
    assert "the agent will receive this text, with your name" in page
    assert 'data-testid="proposed"' not in client.get(f"/runs/{run.pk}/plan/1/review/").content.decode()


def test_a_plan_cannot_take_what_nobody_proposed(house: House, script: Script) -> None:
    script.needed = 1
    script.proposals = [plan(pay(), takes=(1,)), plan(pay())]
    run = house.start()

    state = advance(run)

    refused = [x.event for x in log(run.pk) if isinstance(x.event, e.ProposalRefused)]
    assert [x.problems for x in refused] == [("nobody proposed a constraint 1, which the plan takes",)]
    assert len(state.plans) == 1
