"""A plan's steps as policies and the predicates of constraints see them, and whose run they are told that it is."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from accounts.models import Tenant, User
from approvals import policy
from runs.machine import late
from runs.machine import state as s
from runs.machine.canonical import parse


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Whose run it is, by the names that people write in policies."""

    agent: str
    tenant: str  #: its short name
    principal: str  #: a sign-in name


def judged(plan: s.PlanDocument) -> list[s.PlanStep]:
    """The plan's steps that are judged: all but those that only wait."""
    return [x for x in plan.steps if x.wait is None or x.wait.children]


def judged_steps(plan: s.PlanDocument, about: About) -> list[policy.Step]:
    """The same, as they are seen."""
    return [_judged(x, about) for x in judged(plan)]


def about(state: s.RunState, names: frozenset[str]) -> About:
    """Whose run it is. The database is asked only for what is looked at: `names`."""
    known = state.identity
    tenants, users = (
        Tenant.objects.values_list("slug", flat=True),
        User.objects.values_list("username", flat=True),
    )
    return About(
        agent=known.agent,
        tenant=tenants.get(pk=known.tenant) if "tenant" in names else "",
        principal=users.get(pk=known.principal) if "principal" in names else "",
    )


def _judged(step: s.PlanStep, about: About) -> policy.Step:
    """A step as it is seen, the dearest it may become. One that starts runs counts as what they may spend."""
    return policy.Step(
        tool=step.tool or "run", arguments=parse(late.counted(step)), reversible=step.reversible,
        cost=None if step.cost is None else Decimal(step.cost), agent=about.agent, tenant=about.tenant,
        principal=about.principal, system=step.system if step.tool else "", name=step.name,
    )  # fmt: skip
