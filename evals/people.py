"""The people who start and approve the runs that are measured."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from accounts.models import Membership, Tenant, User
from accounts.rights import Right, grant_right
from approvals.models import Request, Verdict
from evals.agent import STEADY
from runs import actions, agents, engine
from runs.clock import database_now
from runs.models import Agent, Run


@dataclass(frozen=True, kw_only=True)
class House:
    """A tenant of its own, with an operator and an approver."""

    agent: Agent
    operator: User
    approver: User

    def started(self, *, steps: int) -> Run:
        """A run that will propose a plan of that many steps."""
        return actions.start_run(
            agent=self.agent, version="1", goal="Do nothing, often", input={"steps": steps},
            start_key=str(uuid4()), creator=self.operator, principal=self.operator,
        )  # fmt: skip

    def approved(self, *, steps: int) -> Run:
        """A run whose plan of that many steps was approved; nothing of it was executed."""
        run = self.started(steps=steps)
        engine.advance(run.pk)
        request = Request.objects.get(subject=actions.subject_of(run.pk, 1))
        actions.decide_plan(
            person=self.approver, run_id=run.pk, version=1, verdict=Verdict.APPROVE, reason="to measure",
            digest=request.digest, conditions_digest=request.conditions_digest, submission=uuid4(),
        signed_in_at=database_now(),
        )  # fmt: skip
        return run


def build_house(of: agents.Agent = STEADY) -> House:
    """New people in a new tenant, and the agent as they know it."""
    name = f"bench-{uuid4().hex[:8]}"
    tenant = Tenant.objects.create(slug=name, name="Bench")
    agent = Agent.objects.create(tenant=tenant, name=of.name, title=of.title)
    rights = (Right.VIEW_RUNS, Right.START_RUNS, Right.OPERATE_RUNS)
    return House(
        agent=agent,
        operator=_person(f"{name}-operator", agent, rights),
        approver=_person(f"{name}-approver", agent, (Right.VIEW_RUNS, Right.APPROVE_PLANS)),
    )


def _person(name: str, agent: Agent, rights: tuple[Right, ...]) -> User:
    person = User.objects.create_user(username=name)
    Membership.objects.create(user=person, tenant=agent.tenant)
    for right in rights:
        grant_right(to=person, right=right, obj=agent, actor=None, now=database_now())
    return person
