"""Grants: what a principal lent to runs, whether it holds now, and who may lend and end it.

What holds is asked of the database, by the same function that guards each send.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

import msgspec
from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.models import User
from accounts.rights import Denial, Right, objects_with, why_not
from approvals.models import Request, RequestState
from runs import agents
from runs.access import permits
from runs.machine import state as s
from runs.machine.canonical import canonical, digest
from runs.machine.events import Lent
from runs.machine.revalidate import Granted
from runs.models import CLOSED, Agent, Grant, GrantBalance, Run
from runs.prepared import Prepared
from runs.tools import WritingTool

#: The scope of starting runs.
RUNS = "runs"

_STILL = Prepared(
    name="handoff_still_lent",
    sql="""SELECT json_build_array(handoff_guard_authority(%s, %s)->>'why', g.scopes, (g.budget - b.used)::text)::text
    FROM (SELECT 1) one LEFT JOIN runs_grant g ON g.id = %s LEFT JOIN runs_grantbalance b ON b.grant_id = g.id""",
)
_still = msgspec.json.Decoder(tuple[str | None, tuple[str, ...] | None, Decimal | None]).decode


def scopes_of(agent: agents.Agent) -> tuple[str, ...]:
    """All that an agent's runs can be lent: each of its writing tools, and starting runs."""
    return (*sorted(t.name for t in agent.tools if isinstance(t, WritingTool)), RUNS)


def lend(
    *,
    principal: User,
    agent: Agent,
    scopes: Iterable[str],
    now: datetime,
    budget: Decimal | None = None,
    session_key: str = "",
    expires_at: datetime | None = None,
) -> Grant:
    """A new grant. Whether the principal may lend is looked at where it is used, at each send.

    `session_key` binds it to a session, with which it ends; `expires_at` None: for as long as the profile says.
    """
    ends = expires_at or now + settings.HANDOFF_DURATIONS.grant_stands
    grant = Grant.objects.create(
        tenant_id=agent.tenant_id, principal=principal, agent=agent, scopes=list(scopes), budget=budget,
        session_key=session_key, lent_at=now, expires_at=ends,
    )  # fmt: skip
    if budget is not None:
        GrantBalance.objects.create(grant=grant)
    return grant


def as_lent(grant: Grant) -> Lent:
    """What a run's events hold of it: the reference, and what was lent then. Never the session's key."""
    return Lent(
        grant=str(grant.pk), principal=str(grant.principal_id), name=grant.principal.shown_name,
        scopes=tuple(grant.scopes), budget=None if grant.budget is None else str(grant.budget),
        bound=bool(grant.session_key), expires_at=grant.expires_at,
    )  # fmt: skip


def still_lent(state: s.RunState) -> tuple[str, Granted | None]:
    """Why the run's authority does not hold any more (empty: it does), and what is left of its grant."""
    guard = {"principal": state.principal, **({"grant": state.grant} if state.grant else {})}
    asked = [state.identity.tenant, msgspec.json.encode(guard).decode(), state.grant or None]
    why, scopes, left = _still(_STILL.call(asked) or "")
    return why or "", Granted(scopes=scopes, left=left) if scopes is not None else None


class GrantNotFound(Exception):
    """No grant of this id exists for this person: one of a foreign tenant answers just as one that never was."""


class MayNotEnd(Exception):
    """The person may see the grant and may not end it. `denial` says which right is missing."""

    def __init__(self, grant: Grant, denial: Denial) -> None:
        self.grant, self.denial = grant, denial
        super().__init__(denial.sentence)


@dataclass(frozen=True, kw_only=True)
class Impact:
    """What loses its validity with a grant: open runs, and the requests and approvals of their plans."""

    runs: tuple[Run, ...]
    requests: tuple[Request, ...]

    @property
    def digest(self) -> str:
        """Of the runs and requests alone, so that a page can be compared with what it would be now."""
        return digest("impact", canonical([[r.pk for r in self.runs], [str(r.pk) for r in self.requests]]))


def impact_of(grant: Grant) -> Impact:
    """What would lose its validity now."""
    runs = tuple(Run.objects.filter(grant=grant).exclude(state__in=CLOSED).order_by("pk"))
    subjects = [f"{run.pk}:{run.plan_version}" for run in runs]
    opened = (RequestState.PENDING, RequestState.VALID)
    asked = Request.objects.filter(tenant_id=grant.tenant_id, subject__in=subjects, state__in=opened)
    return Impact(runs=runs, requests=tuple(asked.order_by("pk")))


def grant_for(person: User, grant: UUID) -> Grant:
    """The grant, for its principal and for whoever sees a run that it carries. Raises GrantNotFound."""
    # One query for a grant of others as for one that never was: neither the answer nor its time tells them apart.
    lent = Q(principal=person, tenant__in=person.tenants())
    of_agent = Q(agent__in=objects_with(person, Right.VIEW_RUNS, Agent))
    carries = Q(Exists(Run.objects.filter(permits(person, Right.VIEW_RUNS), grant=OuterRef("pk"))))
    known = Grant.objects.select_related("agent", "tenant", "principal", "by", "balance")
    if (row := known.filter(lent | of_agent | carries, pk=grant).first()) is None:
        raise GrantNotFound(str(grant))
    return row


def endable(person: User, grant: UUID) -> Grant:
    """The grant, for its principal and for whoever operates runs of its agent. Raises GrantNotFound, MayNotEnd."""
    row = grant_for(person, grant)
    if not _is_lender(person, row) and (denial := why_not(person, Right.OPERATE_RUNS, row.agent)):
        raise MayNotEnd(row, denial)
    return row


def _is_lender(person: User, grant: Grant) -> bool:
    return grant.principal_id == person.pk and person.tenants().filter(pk=grant.tenant_id).exists()


def grants_of(person: User) -> QuerySet[Grant]:
    """What this person lent, the latest first."""
    return _shown(Grant.objects.filter(principal=person, tenant__in=person.tenants()))


def operated(person: User) -> QuerySet[Grant]:
    """What others lent to agents whose runs this person operates, the latest first."""
    agents_ = objects_with(person, Right.OPERATE_RUNS, Agent)
    return _shown(Grant.objects.filter(agent__in=agents_).exclude(principal=person))


def _shown(found: QuerySet[Grant]) -> QuerySet[Grant]:
    return found.select_related("agent", "tenant", "principal", "balance").order_by("-lent_at", "pk")
