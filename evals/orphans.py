"""How long it takes until every run of a killed fleet has moved, or waits for the right person.

Real processes: a fleet takes the runs and is killed by SIGKILL, all at once; a new fleet, worker and beat, is started
in the demo's durations. The clock runs from the kill until the last run has taken its next safe action.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import connection

from console.embedded.process import Child, Program
from evals.figures import Figure
from evals.orphan_agent import FATES, ORPHANED
from evals.people import build_house
from runs import actions
from runs.durations import PROFILES

MANAGE = str(Path(__file__).resolve().parents[1] / "manage.py")
CORES = 2
#: As the demo has.
PROCESSES = 4
ROLES = ("worker", "beat")
GIVE_UP = 300.0  # seconds
AGENTS = "evals.orphan_agent:ORPHANED"

# As each worker has it while it works: what a run's own events did not extend, its last decision did.
_HELD = """
UPDATE runs_run SET lease_until = handoff_now() + %s
WHERE agent_id = %s AND NOT state IN ('waiting_approval', 'succeeded', 'cancelled', 'restarted')
RETURNING id, seq
"""
_LEFT = """
SELECT count(*) FILTER (WHERE r.seq = o.seq),
    count(*) FILTER (WHERE NOT r.state IN ('succeeded', 'cancelled', 'restarted', 'needs_human', 'waiting_approval'))
FROM bench_orphan o JOIN runs_run r ON r.id = o.id
"""


def measure(
    *, runs: int = 5000, profile: str = "demo", environment: Mapping[str, str] | None = None
) -> Iterator[Figure]:
    """Seconds until all have moved, and until all have ended or wait for a person: an effect that the outside does
    not know is asked about again after its time, by the rules, so the second is longer.
    """
    house = build_house(ORPHANED)
    for fate in _fates(runs):
        actions.start_run(
            agent=house.agent, version=ORPHANED.version, goal=fate, input={"fate": fate}, start_key=str(uuid4()),
            creator=house.operator, principal=house.operator,
        )  # fmt: skip
    whose = ("--tenant", house.agent.tenant.slug, "--of", str(CORES))
    known = {"HANDOFF_PROFILE": profile, "HANDOFF_AGENTS": AGENTS, **(environment or {})}
    dying = [_child(known, "dying_fleet", "--share", str(n), *whose) for n in range(CORES)]
    try:
        for child in dying:
            child.wait_ready(seconds=runs)
        _remember(house.agent.pk, PROFILES[profile].lease)
        began = time.monotonic()
    finally:
        for child in dying:
            child.kill()
    fleet = [_child(known, "worker", "--concurrency", str(PROCESSES)), _child(known, "beat")]
    try:
        moved, settled = _watched(began)
    finally:
        for child in fleet:
            child.stop()
    yield Figure(name=f"orphans_{runs}_moved_s", value=moved, unit="s", target=60)
    yield Figure(name=f"orphans_{runs}_settled_s", value=settled, unit="s")


def _fates(runs: int) -> list[str]:
    """Each fate as often as it should be, mixed."""
    found = [fate for fate, share in FATES.items() for _ in range(round(runs * share / 100))]
    Random(1).shuffle(found)
    return found


def _child(environment: Mapping[str, str], command: str, *arguments: str) -> Child:
    name = "-".join([command, *arguments[1:2]])
    child = Child(
        Program(
            name=name,
            argv=[sys.executable, MANAGE, command, *arguments],
            environment={**environment, "HANDOFF_ROLE": command if command in ROLES else "command"},
            ready=Child.announced,
            grace=5,
        ),
        settings.HANDOFF_HOME,
    )
    child.start()
    return child


def _remember(agent: int, lease: timedelta) -> None:
    """Every run that a worker holds, and its latest event."""
    cursor: Any  # Django's stubs know no timedelta
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS bench_orphan")
        cursor.execute("CREATE TABLE bench_orphan (id text PRIMARY KEY, seq int NOT NULL)")
        cursor.execute(
            f"WITH held AS ({_HELD}) INSERT INTO bench_orphan SELECT id, seq FROM held", [lease, agent]
        )


def _watched(began: float) -> tuple[float, float]:
    """Seconds until all moved, and until all settled."""
    moved = 0.0
    while time.monotonic() - began < GIVE_UP:
        time.sleep(0.5)
        with connection.cursor() as cursor:
            cursor.execute(_LEFT)
            still, open_ones = cursor.fetchone()
        passed = time.monotonic() - began
        moved = moved or (passed if not still else 0.0)
        if not open_ones:
            return moved or passed, passed
    return moved or GIVE_UP, GIVE_UP
