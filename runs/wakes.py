"""Which due runs the sweep wakes: each once, again after a while, the one that waited longest first.

What was woken is kept in a table of hints, `runs_wake`: losing it means that a run is woken once more. Without it
each sweep would wake the same runs again while their messages still stand in the queue, and a thousand runs that
are woken in vain would keep all others from their turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import batched
from typing import Any

from django.conf import settings
from django.db import connection

#: Runs that one worker may be expected to take in a second, at most.
PER_SECOND = 200
#: From twice as many due runs on, messages hold several; and how many at most.
MANY = 25
LARGEST = 20
# The open runs first, by their own index: joined at once, the planner reads each agent's finished runs as well.
# Told: woken and not yet taken by a worker. Where the clock was put back, a time to come says nothing.
_TAKE = """
WITH came AS MATERIALIZED (
    SELECT id, agent_id, agent_version, wake_at, lease_until FROM runs_run
    WHERE NOT state IN ('succeeded', 'cancelled', 'restarted') AND wake_at <= handoff_now()
        AND (lease_until IS NULL OR lease_until <= handoff_now())
), due AS MATERIALIZED (
    SELECT r.id, a.name, r.agent_version, greatest(w.at, r.wake_at) AS since,
        w.at >= greatest(r.wake_at, r.lease_until) AND w.at > handoff_now() - %(pause)s
            AND w.at <= handoff_now() AS told
    FROM came r JOIN runs_agent a ON a.id = r.agent_id LEFT JOIN runs_wake w ON w.run_id = r.id
    WHERE 'agent.' || a.name || '.' || r.agent_version = ANY(%(served)s)
), chosen AS (
    SELECT id, name, agent_version, since FROM due WHERE told IS NOT TRUE
    ORDER BY since LIMIT greatest(%(most)s - (SELECT count(*) FROM due WHERE told), 0)
), noted AS (
    INSERT INTO runs_wake (run_id, at) SELECT id, handoff_now() FROM chosen ORDER BY id
    ON CONFLICT (run_id) DO UPDATE SET at = excluded.at
)
SELECT id, name, agent_version FROM chosen ORDER BY since
"""
_FORGET_OLD = "DELETE FROM runs_wake WHERE at < handoff_now() - interval '1 h'"


def at_most(*, limit: int) -> int:
    """How many wake-ups may stand in the queues: about as many as the live workers take until the next sweep.

    A queue that is longer than what is taken before its messages expire would consist of expired ones only.
    """
    durations = settings.HANDOFF_DURATIONS
    cursor: Any  # Django's stubs know no timedelta, which psycopg writes as an interval
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM runs_worker WHERE last_seen_at > handoff_now() - %s",
            [durations.worker_silent],
        )
        workers: int = cursor.fetchone()[0]
    return min(limit, int(max(workers, 1) * PER_SECOND * durations.sweep.total_seconds()))


def take(*, served: set[str], most: int) -> list[tuple[str, str, str]]:
    """The runs to wake now, noted as woken: id, agent, version. At most `most` stand woken and not yet taken."""
    cursor: Any
    with connection.cursor() as cursor:
        cursor.execute(_FORGET_OLD)
        cursor.execute(_TAKE, {"served": list(served), "pause": lasts(), "most": most})
        found: list[tuple[str, str, str]] = cursor.fetchall()
    return found


def batches(due: Sequence[tuple[str, str, str]]) -> list[tuple[tuple[str, str], list[str]]]:
    """The runs of each agent version in messages: one each while few are due, so that none waits behind another."""
    size = min(max(len(due) // MANY, 1), LARGEST)
    queues: dict[tuple[str, str], list[str]] = {}
    for run_id, agent, version in due:
        queues.setdefault((agent, version), []).append(run_id)
    return [(queue, list(some)) for queue, runs in queues.items() for some in batched(runs, size)]


def forget(runs: Sequence[str]) -> None:
    """These were not woken after all."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM runs_wake WHERE run_id = ANY(%s)", [list(runs)])


def lasts() -> timedelta:
    """How long a wake-up of the sweep is good for: after that it counts as lost, and another may be sent."""
    durations = settings.HANDOFF_DURATIONS
    return max(durations.lease, 5 * durations.sweep)
