"""What must be true of every run at any moment, as one query."""

from __future__ import annotations

from django.db import connection

#: Open runs that wait for nothing: no worker will look, and no person is asked anything.
_WAITS_FOR_NOTHING = """
WITH open AS (
  SELECT r.*,
    EXISTS (SELECT FROM runs_effect e WHERE e.run_id = r.id AND e.status IN ('in_flight', 'unknown')) AS unsettled,
    EXISTS (SELECT FROM approvals_request q WHERE q.subject = r.id || ':' || r.plan_version AND q.state = 'pending')
      AS asked,
    EXISTS (SELECT FROM runs_wait w WHERE w.run_id = r.id AND w.ended_seq IS NULL AND w.kind = 'signal')
      OR EXISTS (SELECT FROM runs_child c WHERE c.run_id = r.id AND c.ended_seq IS NULL) AS awaits,
    EXISTS (SELECT FROM runs_child c WHERE c.run_id = r.id AND c.ended_seq IS NULL) AS children
  FROM runs_run r WHERE r.seq > 0 AND r.state NOT IN ('succeeded', 'cancelled', 'restarted')
)
SELECT id, state, reasons FROM open WHERE CASE state
    WHEN 'waiting_approval' THEN asked <> (wake_at IS NOT NULL)
    WHEN 'needs_human' THEN reasons = '{}' OR (reasons <@ '{effect_unknown}' AND NOT unsettled)
      OR (cancel_requested AND direction = 'forward' AND NOT unsettled AND NOT children AND wake_at IS NULL)
    WHEN 'unknown' THEN NOT unsettled OR wake_at IS NULL
    WHEN 'waiting' THEN wake_at IS NULL AND NOT awaits
    ELSE wake_at IS NULL
  END
"""
_UNSETTLED_AND_OVER = """
SELECT r.id, r.state FROM runs_run r JOIN runs_effect e ON e.run_id = r.id
WHERE r.state IN ('succeeded', 'cancelled', 'restarted') AND e.status IN ('in_flight', 'unknown')
"""


def assert_nothing_waits_for_nothing() -> None:
    """No open run without a next move, and no run that is over with an effect unsettled."""
    with connection.cursor() as cursor:
        for query in (_WAITS_FOR_NOTHING, _UNSETTLED_AND_OVER):
            cursor.execute(query)
            assert cursor.fetchall() == []
