"""Which runs wait for approval under another policy than the one in force, from the source and before any mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.utils.translation import gettext as _

from runs import agents
from runs.models import Run

_ASKED_UNDER = """
SELECT r.id, p.policy_version, a.name, r.agent_version, handoff_policy_in_force(r.tenant_id, a.name)
FROM runs_run r JOIN runs_agent a ON a.id = r.agent_id
JOIN runs_planversion p ON p.run_id = r.id AND p.version = r.plan_version
WHERE r.id = ANY(%s) AND r.state = 'waiting_approval' AND p.voided_seq IS NULL
"""


@dataclass(frozen=True, kw_only=True)
class Outdated:
    """A policy under which people were asked and which is not in force any more."""

    was: str
    now: str


def outdated(runs: Sequence[Run]) -> dict[str, Outdated]:
    """Those of the runs whose request nobody can decide any more, since the policy changed: one query."""
    waiting = [run.pk for run in runs if run.state == "waiting_approval"]
    if not waiting:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_ASKED_UNDER, [waiting])
        rows = cursor.fetchall()
    found = {
        run: Outdated(was=was, now=now or _own(name, version, was)) for run, was, name, version, now in rows
    }
    return {run: one for run, one in found.items() if one.was != one.now}


def _own(name: str, version: str, was: str) -> str:
    """The version of the agent's own policy; where its code is not here, another than any that a tenant held."""
    if code := agents.registered().get((name, version)):
        return code.policy.version
    return _("the agent’s own policy") if was.startswith(f"{name}/held/") else was
