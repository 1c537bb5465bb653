"""A run waits for one that waits for approval, and every process is another one than before: one approval is enough."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from approvals.models import Request
from runs.machine.state import State
from runs.models import Run
from tests.fixtures.database import LiveDatabase
from tests.people import House, assert_replays
from tests.runs.test_children import DEAR, TELL, children
from tests.runs.test_evidence import kinds


def restarted(live_db: LiveDatabase, home: Path, *runs: Run, agents: str = "tests.outside:PAYER") -> None:
    """Processes that know nothing but the database move the runs, one after the other."""
    environment = {
        **os.environ, "DATABASE_URL": live_db.url, "HANDOFF_AGENTS": agents, "HANDOFF_ROLE": "worker",
        "HANDOFF_PROFILE": "demo", "DJANGO_SETTINGS_MODULE": "console.settings", "HANDOFF_HOME": str(home),
    }  # fmt: skip
    for run in runs:
        argv = [sys.executable, "-m", "tests.runs.fresh_worker", run.pk]
        subprocess.run(argv, env=environment, check=True, timeout=120)


def test_one_approval_of_the_child_lets_the_parent_go_on(
    house: House, live_db: LiveDatabase, tmp_path: Path
) -> None:
    run = house.scripted([{"children": {"1": {"plans": [[DEAR]]}}}, TELL])
    (child,) = children(run)
    restarted(live_db, tmp_path, child, run)
    assert assert_replays(child).state is State.WAITING_APPROVAL
    assert assert_replays(run).state is State.WAITING

    house.decide(child, house.approver)
    restarted(live_db, tmp_path, child, run)

    assert assert_replays(child).state is State.SUCCEEDED
    assert assert_replays(run).state is State.SUCCEEDED
    assert Request.objects.count() == 1
    assert kinds(child).count("EffectIntended") == kinds(run).count("EffectIntended") == 1
