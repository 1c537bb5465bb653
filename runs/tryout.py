"""A policy tried on past plans before it counts: what it would have asked, beside what the one in force asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec
from django.db import connection

from approvals import policy
from runs import judging, planning
from runs.machine import events as e
from runs.machine import state as s
from runs.models import Agent

MOST: Final = 200
_PLANS = """
SELECT p.run_id, p.version, v.seq, v.version, v.body, u.username, t.slug FROM (
    SELECT r.id, r.created_at, r.principal_id, r.tenant_id FROM runs_run r WHERE r.agent_id = %s
    ORDER BY r.created_at DESC, r.id LIMIT %s
) r JOIN runs_planversion p ON p.run_id = r.id JOIN runs_event v ON v.run_id = p.run_id AND v.seq = p.seq
JOIN accounts_user u ON u.id = r.principal_id JOIN accounts_tenant t ON t.id = r.tenant_id
WHERE v.body IS NOT NULL ORDER BY r.created_at DESC, r.id, p.version DESC LIMIT %s
"""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One past plan, with what each of the two policies asks for it."""

    run: str
    version: int
    today: policy.Requirement
    then: policy.Requirement
    #: More changes that cannot be undone than the policy allows in one plan: it would be refused as it is proposed.
    refused_today: bool = False
    refused_then: bool = False

    @property
    def differs(self) -> bool:
        """Whether anything that approvers or the planner would notice is another."""
        return (_asks(self.today), self.refused_today) != (_asks(self.then), self.refused_then)


def _asks(asked: policy.Requirement) -> tuple[object, ...]:
    checks = tuple((check.name, check.kind) for check in asked.failed)
    return asked.needed, asked.quorums, asked.not_by, asked.stands_for, checks, bool(asked.failure)


def tried(agent: Agent, *, today: policy.Policy, then: policy.Policy) -> list[Tried]:
    """The last plans of this agent in its tenant, the newest first, each judged by both policies. Writes nothing."""
    return [_tried(*found, today, then) for found in past_plans(agent)]


def past_plans(agent: Agent) -> Iterator[tuple[str, s.PlanDocument, judging.About]]:
    """The last plans of this agent; one that this build cannot read is left out."""
    with connection.cursor() as cursor:
        cursor.execute(_PLANS, [agent.pk, MOST, MOST])
        rows = cursor.fetchall()
    for run, _version, seq, version, body, principal, tenant in rows:
        try:
            event = e.decode(seq=seq, type_=e.PlanProposed.__name__, version=version, body=body)
            assert isinstance(event, e.PlanProposed)
            plan = msgspec.json.decode(e.text_of(event.document), type=s.PlanDocument)
        except (e.UnknownEvent, msgspec.MsgspecError):
            continue
        yield run, plan, judging.About(agent=agent.name, tenant=tenant, principal=principal)


def _tried(
    run: str, plan: s.PlanDocument, about: judging.About, today: policy.Policy, then: policy.Policy
) -> Tried:
    steps = judging.judged_steps(plan, about)
    return Tried(
        run=run, version=plan.version, today=policy.requirement(policy=today, steps=steps),
        then=policy.requirement(policy=then, steps=steps),
        refused_today=_refused(today, plan), refused_then=_refused(then, plan),
    )  # fmt: skip


def _refused(rules: policy.Policy, plan: s.PlanDocument) -> bool:
    """Whether the limit of the policy keeps the plan from being proposed. One that undoes is code's: it has none."""
    most = policy.most_irreversible(rules)
    return most is not None and not plan.undo and planning.cannot_be_undone(plan.steps) > most
