"""Policies that a tenant holds for its agents: another version, making one current, and ending what rested on another.

From the commit of a release nothing is sent and no decision is taken under the policy before: the guard of a send and
`binding.changed` look at the one in force. `void_outdated` marks the runs afterwards, a batch at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction

from accounts.fence import fence_exclusive
from accounts.models import User
from accounts.rights import Denial, Right, why_not
from approvals import held
from runs import affected, planning
from runs.actions.frame import first_use, locked_by_system
from runs.actions.plans import code_of
from runs.actions.writing import write
from runs.clock import database_now
from runs.ledger import LogUnreadable, load
from runs.machine import decide
from runs.machine import events as e
from runs.models import Agent, Submission
from runs.outbox import wake_on_commit

log = logging.getLogger(__name__)
SYSTEM = e.Actor(e.ActorKind.SYSTEM, "policies", "policies")
ADD, RELEASE = "add_policy", "release_policy"
_OUTDATED = """
WITH force AS (
    SELECT DISTINCT ON (tenant_id, agent) tenant_id, agent, agent || '/held/' || number AS policy
    FROM approvals_policyrelease ORDER BY tenant_id, agent, id DESC
)
SELECT r.id FROM force f JOIN runs_agent a ON a.tenant_id = f.tenant_id AND a.name = f.agent
JOIN runs_run r ON r.agent_id = a.id JOIN runs_planversion p ON p.run_id = r.id AND p.version = r.plan_version
WHERE r.tenant_id = f.tenant_id AND r.state = 'waiting_approval' AND p.voided_seq IS NULL AND CASE
    WHEN f.policy IS NULL THEN starts_with(p.policy_version, f.agent || '/held/') ELSE p.policy_version <> f.policy END
ORDER BY r.id LIMIT %s
"""


class PolicyNotManaged(Exception):
    """The person may not manage the policies of this agent. `denial` says which right is missing."""

    def __init__(self, denial: Denial) -> None:
        self.denial = denial
        super().__init__(denial.sentence)


class PolicyOutdated(Exception):
    """The policy in force, or what a release would end, is not what the person's page showed. Nothing was changed."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What a form about a policy did: which version it is about, None for the agent's own."""

    number: int | None
    repeated: bool = False


def add_policy(*, person: User, agent: Agent, text: str, reason: str, submission: UUID) -> Kept:
    """Keep another version of the policy; it is not in force before it is released.

    Raises PolicyNotManaged; approvals.documents.DocumentRefused with all that is wrong in the text; Refused where the
    form's id belongs to another action.
    """

    def add() -> int:
        made = held.add_version(
            tenant_id=agent.tenant_id, agent=agent.name, text=text, author=person, reason=reason, now=database_now()
        )  # fmt: skip
        return made.number

    return _once(person, agent, ADD, submission, add)


def release_policy(
    *, person: User, agent: Agent, number: int | None, seen: str, reason: str, submission: UUID
) -> Kept:
    """Make a version the policy in force for the agent; None: the agent's own again.

    `seen` is the digest of what the page said would be ended (`affected.Impact.digest`). Raises PolicyOutdated where it
    is another now, PolicyNotManaged, Refused.
    """

    def release() -> int | None:
        if affected.impact(agent, number).digest != seen:
            raise PolicyOutdated
        held.release(
            tenant_id=agent.tenant_id, agent=agent.name, number=number, by=person, reason=reason, now=database_now()
        )  # fmt: skip
        return number

    return _once(person, agent, RELEASE, submission, release)


def _once(person: User, agent: Agent, action: str, submission: UUID, act: Callable[[], int | None]) -> Kept:
    """Under the tenant's fence, for one who may, once per form."""
    with transaction.atomic():
        fence_exclusive(agent.tenant_id)
        if denial := why_not(person, Right.MANAGE_POLICIES, agent):
            raise PolicyNotManaged(denial)
        if first := first_use(submission, person, f"{action} {agent.pk}"):
            return Kept(number=first.result["number"], repeated=True)
        number = act()
        Submission.objects.create(
            id=submission, tenant_id=agent.tenant_id, person=person, action=f"{action} {agent.pk}",
            result={"number": number}, at=database_now(),
        )  # fmt: skip
    return Kept(number=number)


def void_outdated(most: int) -> int:
    """End the requests that ask under a policy which is not in force any more; how many runs were woken to plan anew.

    Approved plans need no mark: their runs are due, and find it when they revalidate.
    """
    with connection.cursor() as cursor:
        cursor.execute(_OUTDATED, [most])
        found = [row[0] for row in cursor.fetchall()]
    return sum(_voided(run_id) for run_id in found)


def _voided(run_id: str) -> bool:
    """One that fails keeps none of the others from being told."""
    try:
        return _void(run_id)
    except LogUnreadable:
        log.exception("the log cannot be reduced", extra={"run": run_id})
        return False


def _void(run_id: str) -> bool:
    with transaction.atomic():
        run, now = locked_by_system(run_id)
        state = load(run_id)
        policy = planning.policy_if_known(state, code_of(run))
        events = decide.policy_changed(state, policy.version if policy else "")
        if events:
            write(state, events, run=run, actor=SYSTEM, now=now)
            wake_on_commit(run_id=run_id, agent=run.agent.name, version=run.agent_version)
    return bool(events)
