"""Where the rehearsal takes place: its agent in the demo's tenant, and who may do what with it."""

from __future__ import annotations

from collections.abc import Mapping

from accounts.models import Membership, User
from accounts.permissions import ON_AGENT
from accounts.rights import grant_right
from examples.lives.agent import LIVES, RULED, SCOPED
from examples.lives.lives import People
from examples.refunds.demo.people import APPROVER, OPERATOR, PEOPLE
from runs import agents
from runs.clock import database_now
from runs.models import Agent

LEAVING = "lena"
GUEST = "gustav"


def stage(refunds: Agent, people: Mapping[str, User]) -> tuple[Agent, People]:
    """The agent, beside the demo's own, with the rights that the demo's people have there; and who acts."""
    agent = _agent(LIVES, refunds, people)
    _agent(RULED, refunds, people)
    _agent(SCOPED, refunds, people)
    leaving, _ = User.objects.get_or_create(username=LEAVING, defaults={"display_name": "Lena Brandt"})
    Membership.objects.get_or_create(user=leaving, tenant_id=refunds.tenant_id)
    guest, _ = User.objects.get_or_create(username=GUEST, defaults={"display_name": "Gustav Moll"})
    Membership.objects.get_or_create(user=guest, tenant_id=refunds.tenant_id)
    return agent, People(
        operator=people[OPERATOR.username], approver=people[APPROVER.username], leaving=leaving, guest=guest
    )


def _agent(code: agents.Agent, refunds: Agent, people: Mapping[str, User]) -> Agent:
    agent, new = Agent.objects.get_or_create(
        tenant_id=refunds.tenant_id, name=code.name, defaults={"title": code.title}
    )
    for who in PEOPLE if new else ():
        for right in (x for x in who.rights if x in ON_AGENT):
            grant_right(to=people[who.username], right=right, obj=agent, actor=None, now=database_now())
    return agent
