"""What rests on another policy than one that may be released: open requests and approvals of open runs, now."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from django.db import connection

from approvals import held
from runs.models import CLOSED, Agent

_RESTS = """
SELECT r.id, p.version, coalesce(q.state, 'by_policy') FROM runs_run r
JOIN runs_planversion p ON p.run_id = r.id AND p.version = r.plan_version
LEFT JOIN approvals_request q ON q.tenant_id = r.tenant_id AND q.subject = r.id || ':' || p.version
    AND q.state IN ('pending', 'valid')
WHERE r.agent_id = %(agent)s AND NOT r.state = ANY(%(closed)s) AND p.voided_seq IS NULL
    AND (q.state IS NOT NULL OR p.by_policy)
    AND CASE WHEN %(policy)s = '' THEN starts_with(p.policy_version, %(held)s) ELSE p.policy_version <> %(policy)s END
ORDER BY r.id
"""


@dataclass(frozen=True, kw_only=True)
class Rest:
    """One plan of an open run that rests on another policy: pending, valid, or by_policy where nobody was asked."""

    run: str
    version: int
    state: str


@dataclass(frozen=True, kw_only=True)
class Impact:
    """All that a release would end."""

    rests: tuple[Rest, ...]
    #: What a form sends back, so that it confirms what was seen.
    digest: str

    def count(self, state: str) -> int:
        """How many of one kind."""
        return sum(rest.state == state for rest in self.rests)


def impact(agent: Agent, number: int | None) -> Impact:
    """What making this version current would end now; None: the agent's own. The digest holds the one in force too."""
    policy = held.NAME.format(agent=agent.name, number=number) if number else ""
    values: dict[str, Any] = {
        "agent": agent.pk,
        "closed": CLOSED,
        "policy": policy,
        "held": f"{agent.name}/held/",
    }
    with connection.cursor() as cursor:
        cursor.execute(_RESTS, values)
        rests = tuple(Rest(run=row[0], version=row[1], state=row[2]) for row in cursor.fetchall())
        cursor.execute("SELECT handoff_policy_in_force(%s, %s)", [agent.tenant_id, agent.name])
        current = cursor.fetchone()[0]
    said = [str(current), *(f"{rest.run}:{rest.version}:{rest.state}" for rest in rests)]
    return Impact(rests=rests, digest=hashlib.sha256("\n".join(said).encode()).hexdigest())
