"""Lending anew to a run that lost what it acted on, ending a grant, and checks that a person has made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import transaction

from accounts.fence import fence_exclusive
from accounts.models import User
from accounts.rights import Right
from runs import agents, facts, grants
from runs.actions.frame import Done, by_person, repeated
from runs.clock import database_now
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.revalidate import Fresh, report
from runs.models import Agent, Grant, Run, Submission

END = "end_grant"


class ImpactChanged(Exception):
    """Ending the grant would now stop other runs than the person's page showed; `now` has them. Nothing changed."""

    def __init__(self, now: grants.Impact) -> None:
        self.now = now
        super().__init__(now.digest)


class GrantOver(Exception):
    """The grant had ended already; nothing changed."""


def lend_all(
    *,
    agent: Agent,
    version: str,
    principal: User,
    budget: Decimal | None = None,
    session_key: str = "",
    expires_at: datetime | None = None,
) -> Grant:
    """A grant for all that a registered version of the agent does, to be named by the runs that are started on it.

    Inside the transaction of the starts. Raises KeyError for an agent that is not registered.
    """
    scopes = grants.scopes_of(agents.registered()[(agent.name, version)])
    return grants.lend(
        principal=principal,
        agent=agent,
        scopes=scopes,
        now=database_now(),
        budget=budget,
        session_key=session_key,
        expires_at=expires_at,
    )


def lend_anew(
    *,
    person: User,
    run_id: str,
    scopes: Sequence[str],
    note: str,
    submission: UUID,
    budget: Decimal | None = None,
    session_key: str = "",
    expires_at: datetime | None = None,
) -> Done:
    """Lend to a run that stopped because its grant does not carry it any more: the person is its principal from here.

    A person has to approve what is left of its plan before it goes on. Raises Refused where it stopped for another
    reason.
    """

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        agent = Agent.objects.get(tenant_id=state.identity.tenant, name=state.identity.agent)
        if not decide.may_lend(state):
            return decide.lent(state, _nothing(person, now), note=note)
        grant = grants.lend(
            principal=person, agent=agent, scopes=scopes, now=now, budget=budget, session_key=session_key,
            expires_at=expires_at,
        )  # fmt: skip
        return decide.lent(state, grants.as_lent(grant), note=note)

    return by_person(
        person=person, run_id=run_id, right=Right.START_RUNS, action="lend", submission=submission,
        events_of=events_of,
    )  # fmt: skip


def _nothing(person: User, now: datetime) -> e.Lent:
    return e.Lent(grant="", principal=str(person.pk), name=person.shown_name, scopes=(), expires_at=now)


def end_grant(*, person: User, grant: UUID, why: str, impact: str, submission: UUID) -> Grant:
    """End a grant: from the commit nothing that rests on it is sent. `impact` is the digest that the page showed.

    Raises grants.GrantNotFound, grants.MayNotEnd, GrantOver, ImpactChanged.
    """
    with transaction.atomic():
        row = grants.endable(person, grant)
        if repeated(submission, person, END):
            return row
        fence_exclusive(row.tenant_id)
        row = grants.endable(person, grant)
        if row.ended_at is not None:
            raise GrantOver(str(grant))
        now_impact = grants.impact_of(row)
        if now_impact.digest != impact:
            raise ImpactChanged(now_impact)
        row.ended_at, row.by, row.why = database_now(), person, why
        row.save(update_fields=["ended_at", "by", "why"])
        Submission.objects.create(
            id=submission, tenant_id=row.tenant_id, person=person, action=END, at=row.ended_at,
            result={"grant": str(row.pk), "why": why, "impact": impact},
        )  # fmt: skip
    return row


def check_now(
    *,
    person: User,
    run_id: str,
    reads: Mapping[tuple[str, str], Fresh],
    submission: UUID,
) -> Done:
    """Make the checks of a revalidation and keep the report. Nothing is moved, and no wake-up. `reads` is what the
    sources that the plan rests on gave just now. Raises Refused where the run is over.
    """

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        run = Run.objects.get(pk=run_id)
        agent = agents.registered().get((state.identity.agent, state.identity.agent_version))
        return (e.ChecksMade(checks=report(state, facts.gather(state, run, agent, reads, now), now)),)

    return by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action="check", submission=submission,
        events_of=events_of,
    )  # fmt: skip
