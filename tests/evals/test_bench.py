"""The bench's figures, with small numbers: that they are made of what they say, not what they come to."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pytest_django import Settings

from approvals.documents import policy_of
from console.embedded.home import Home
from evals import durable_step, orphans, pages, policies, reduction, revalidation, sweeping, withdrawal
from evals.agent import ARGUMENTS_BYTES, RESULT_BYTES
from evals.figures import Figure, write
from evals.long_log import long_run
from evals.people import build_house
from runs import agents, engine
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine import state as s
from runs.models import Run
from runs.rereduction import differences
from tests.fixtures.brokers import Broker
from tests.fixtures.database import LiveDatabase

pytestmark = pytest.mark.usefixtures("steady")


def test_each_step_sends_600_bytes_under_an_approval_and_gets_300_back() -> None:
    run = build_house().approved(steps=3)
    engine.advance(run.pk)
    state = load(run.pk)
    assert state.state is s.State.SUCCEEDED
    assert state.request is not None
    assert len(state.effects) == 3
    assert {len(effect.arguments) for effect in state.effects.values()} == {ARGUMENTS_BYTES}
    receipts = [x.event for x in log(run.pk) if isinstance(x.event, e.ReceiptStored)]
    assert {len(e.text_of(receipt.evidence)) for receipt in receipts} == {RESULT_BYTES}
    assert differences(run.pk) == []


def test_a_step_is_measured_between_each_two_calls() -> None:
    ratio, step, computed, floor = durable_step.measure(rounds=1, runs=2, steps=3)
    assert ratio.name == "durable_step_ratio"
    assert step.value > 0
    assert 0 < computed.value < step.value
    assert floor.value > 0
    assert Run.objects.filter(state="succeeded").count() == 4  # one round to warm up, one that counts


def test_a_long_log_is_whole_and_amounts_to_its_rows() -> None:
    run = long_run(build_house(), length=120)
    assert Run.objects.get(pk=run).seq == 120
    assert differences(run) == []


def test_reduction_and_loading_are_measured() -> None:
    names = [figure.name for figure in reduction.measure(length=120, times=1)]
    assert names == ["reduce_events_per_second", "reduce_long_events_per_second", "load_120_ms"]


def test_the_policy_is_measured_on_steps_of_which_every_rule_has_something_to_say() -> None:
    (figure,) = policies.measure(times=3)
    assert figure.name == "policy_step_us" and figure.value > 0
    policy = policy_of(policies.TEXT, version="bench/1")
    assert not policies.judged(policy.evaluate(policies.plan()[:1])), "it would measure any plan"


def test_the_sweep_is_measured_beside_finished_runs() -> None:
    figures = list(sweeping.measure(finished=30, opened=9, times=2))
    assert [figure.name for figure in figures] == ["sweep_growth_ratio", "sweep_ms"]
    assert Run.objects.filter(state="succeeded").count() == 30
    assert Run.objects.filter(state="executing").count() == 9


def test_a_killed_fleets_runs_are_measured_until_the_next_has_moved_them(
    live_db: LiveDatabase, broker: Broker, settings: Settings, tmp_path: Path
) -> None:
    settings.HANDOFF_AGENTS = [orphans.AGENTS]
    settings.HANDOFF_HOME = Home(tmp_path / "fleet")
    settings.HANDOFF_HOME.make()
    agents.registered.cache_clear()

    moved, settled = orphans.measure(runs=20, profile="test", environment={"DATABASE_URL": live_db.url})

    assert moved.name == "orphans_20_moved_s"
    assert 0 < moved.value <= settled.value < orphans.GIVE_UP
    ends = {(run.goal, run.state) for run in Run.objects.all()}
    assert ends == {
        ("asking", "succeeded"), ("planned", "succeeded"), ("found", "succeeded"), ("lost", "succeeded"),
        ("blind", "needs_human"), ("waiting", "waiting_approval"),
    }  # fmt: skip


def test_the_pages_are_measured_with_their_queries() -> None:
    figures = list(pages.measure(events=60, runs=3, times=1))
    assert [f.name for f in figures] == [
        "run_page_ms", "run_page_queries", "inbox_page_ms", "inbox_page_queries",
    ]  # fmt: skip
    assert [f.name for f in figures if not f.value] == []


def test_a_revalidation_and_the_permissions_of_an_inbox_page_are_measured() -> None:
    checks, permissions = revalidation.measure(times=3, runs=3)
    assert (checks.name, checks.target) == ("revalidation_ms", 10)
    assert checks.value > 0
    assert (permissions.value, permissions.verdict) == (1, "ok"), "one query, whatever the number of runs"


def test_figures_are_kept_with_their_verdicts(tmp_path: Path) -> None:
    kept = tmp_path / "bench.json"
    figures = [
        Figure(name="a", value=2.5, unit="x", target=2.0),
        Figure(name="b", value=2.5, unit="1/s", target=2.0, at_most=False),
        Figure(name="c", value=1234.5, unit="us"),
    ]
    write(figures, to=kept, at=datetime(2026, 1, 1, tzinfo=UTC))
    assert [f.line for f in figures] == ["a 2.5 x <=2 short", "b 2.5 1/s >=2 ok", "c 1234 us - ok"]
    assert [f["verdict"] for f in json.loads(kept.read_text())["figures"]] == ["short", "ok", "ok"]


def test_each_run_is_told_of_a_withdrawal_once() -> None:
    impact, told, memory = withdrawal.measure(runs=250, times=1)
    assert [f.name for f in (impact, told)] == ["impact_250_ms", "withdrawal_250_told_s"]
    assert told.value > 0 and memory.value < 50
    assert Run.objects.filter(reasons=["constraint_withdrawn"]).count() == 250
