"""Between an approval and the send the worker is another process: it sends what was approved, or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from approvals.models import Request
from runs import engine, recovery
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine.canonical import digest
from runs.machine.state import PlanStep, RunState, State
from runs.models import Event, Run
from tests.fixtures.database import LiveDatabase
from tests.outside import World
from tests.people import House, advance
from tests.runs.test_nested_approval import restarted

AGENTS = "tests.after_approval"


def planned(house: House, live_db: LiveDatabase, home: Path, *, by: str) -> tuple[Run, PlanStep]:
    """A run whose plan that worker made and a person approved, with its first step as it was approved."""
    run = house.start("2000", "250.00")
    restarted(live_db, home, run, agents=by)
    house.decide(run, house.approver)
    state = load(run.pk)
    assert state.state is State.APPROVED and state.plan is not None
    return run, state.plan.plan.steps[0]


def sent(state: RunState) -> tuple[str, str, str]:
    """Of the first effect: the amount of its intent, that of its receipt, and the digest that the ledger has."""
    effect = state.effects[1]
    receipts = [r.event for r in log(state.identity.run) if isinstance(r.event, e.ReceiptStored)]
    shown = json.loads(e.text_of(receipts[0].evidence))["amount"]
    return json.loads(effect.arguments)["amount"], shown, effect.arguments_digest


@pytest.mark.parametrize(
    ("before", "after", "amount"),
    [("tests.outside:PAYER", f"{AGENTS}:CLAMPING", "250.00"), (f"{AGENTS}:CLAMPING", "tests.outside:PAYER", "120.00")],
)  # fmt: skip
def test_a_hook_that_comes_or_goes_after_the_approval_changes_nothing_of_what_is_sent(
    house: House, live_db: LiveDatabase, tmp_path: Path, before: str, after: str, amount: str
) -> None:
    """What people read, approve and see executed is what the last hook made of it, before the digest was taken."""
    run, step = planned(house, live_db, tmp_path, by=before)
    assert json.loads(step.arguments)["amount"] == amount
    client = Client()
    client.force_login(house.approver, backend="django.contrib.auth.backends.ModelBackend")
    assert amount in client.get(f"/runs/{run.pk}/plan/1/review/").content.decode()

    restarted(live_db, tmp_path, run, agents=after)

    state = load(run.pk)
    assert state.state is State.SUCCEEDED
    assert sent(state) == (amount, amount, step.arguments_digest)
    assert step.arguments_digest == digest("arguments", step.arguments)


def test_another_tool_under_the_approved_name_is_never_called(
    house: House, live_db: LiveDatabase, tmp_path: Path
) -> None:
    run, _step = planned(house, live_db, tmp_path, by="tests.outside:PAYER")

    restarted(live_db, tmp_path, run, agents=f"{AGENTS}:SWAPPED")

    state = load(run.pk)
    (reason,) = state.reasons
    assert (reason.code, state.effects) == ("version_unavailable", {})
    assert "tool:pay" in reason.evidence


@pytest.mark.parametrize(("was", "now"), [("pay", "tell"), ("250.00", "950.00")])
def test_a_stored_plan_with_another_tool_or_argument_is_not_sent(
    house: House, live_db: LiveDatabase, tmp_path: Path, was: str, now: str
) -> None:
    """As somebody who owns the database could write it after the approval."""
    run, _step = planned(house, live_db, tmp_path, by="tests.outside:PAYER")
    body = Event.objects.get(run=run, type="PlanProposed").body or ""
    assert was in body
    rewrite(run, body.replace(was, now))

    restarted(live_db, tmp_path, run)

    state = load(run.pk)
    assert (state.reasons[0].code, state.effects) == ("log_damaged", {})
    rewrite(run, body)


def rewrite(run: Run, body: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE runs_event DISABLE TRIGGER USER")
        cursor.execute(
            "UPDATE runs_event SET body = %s WHERE run_id = %s AND type = 'PlanProposed'", [body, run.pk]
        )
        cursor.execute("ALTER TABLE runs_event ENABLE TRIGGER USER")


def test_an_approval_before_the_worker_that_asked_let_go_is_found(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question is stored, people answer, and the worker still holds the run: nobody waits yet, nothing is lost."""
    run, release = house.start("2000", "250.00"), recovery._release

    def answered_first(*lease: Any) -> None:
        monkeypatch.undo()
        assert Run.objects.get(pk=run.pk).lease_until is not None
        house.decide(run, house.approver)
        release(*lease)

    monkeypatch.setattr(recovery, "_release", answered_first)
    engine.advance(run.pk)
    assert load(run.pk).state is State.APPROVED

    assert advance(run).state is State.SUCCEEDED
    assert Request.objects.count() == 1
