"""Taking a run in from its checkpoint, in a database that does not have it: it goes on under its own id."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from django.db import IntegrityError, transaction

from accounts.fence import fence_shared
from accounts.models import Tenant, User
from accounts.rights import Right
from runs import agents, artifacts, grants, ledger, planning
from runs.access import agents_for
from runs.actions.frame import person_actor
from runs.actions.writing import write
from runs.checkpoints import Taken, Verified
from runs.clock import database_now
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.checkpoint import CheckpointRefused
from runs.machine.projection import PROJECTED
from runs.models import Agent, Run
from runs.outbox import wake_on_commit


class AlreadyHere(CheckpointRefused):
    """A run of the file is in this database: two of them would do everything twice. Nothing was changed."""


class AgentMissing(CheckpointRefused):
    """The person may start no runs of this agent here, or of several of that name. Nothing was changed."""


def take_in(*, person: User, taken: Taken, tenant: Tenant | None = None) -> Run:
    """Take the run of a verified file in, with the runs that it started; the run. Each goes on where it was.

    The person lends it authority from now on. What was in flight is unknown, nothing is sent before the outside was
    asked, and approval is asked for anew. `tenant` is needed where the person is of several that have the agent.
    Raises AlreadyHere, AgentMissing, artifacts.ArtifactNotKept.
    """
    found = [(one, _agent(person, one.state.identity.agent, tenant)) for one in taken.runs]
    for data in taken.artifacts.values():
        artifacts.put(tenant_id=found[0][1].tenant_id, data=data, media_type=artifacts.JSON)
    try:
        with transaction.atomic():
            fence_shared(found[0][1].tenant_id)
            runs = [_row(one, agent, person) for one, agent in found]
            for run, (one, _) in zip(runs, found, strict=True):
                _begin(run, one, person)
    except IntegrityError as error:
        raise AlreadyHere(_here(taken, str(error))) from error
    return runs[0]


def _here(taken: Taken, why: str) -> str:
    known = list(Run.objects.filter(pk__in=[x.document.run for x in taken.runs]).values_list("pk", flat=True))
    if known:
        return f"{', '.join(known)} is in this database already. It goes on here, and is not taken in again."
    return f"It does not fit beside what is in this database: {why}"


def _agent(person: User, name: str, tenant: Tenant | None) -> Agent:
    allowed = agents_for(person, Right.START_RUNS).filter(name=name)
    found = list(allowed.filter(tenant=tenant) if tenant else allowed)
    if len(found) != 1:
        why = "several organisations have it: name one" if found else "there is none, or the right is missing"
        raise AgentMissing(f"{person.shown_name} may not start runs of the agent {name} here ({why}).")
    return found[0]


def _row(one: Verified, agent: Agent, person: User) -> Run:
    """The run's row as it was at the checkpoint; its first event here is chained to the last one there."""
    state, known = one.state, one.state.identity
    here = set(Run.objects.filter(pk__in=[known.predecessor, known.parent]).values_list("pk", flat=True))
    return Run.objects.create(
        id=known.run, tenant_id=agent.tenant_id, agent=agent, agent_version=known.agent_version,
        lineage=known.lineage, predecessor_id=known.predecessor if known.predecessor in here else None,
        parent_id=known.parent if known.parent in here else None, start_key=known.start_key, principal=person,
        created_at=known.started_at, goal=state.goal.text, goal_version=state.goal.version, state=state.state.value,
        since=state.since or state.at, seq=one.document.seq, head=bytes.fromhex(one.document.head), at=state.at,
        schema_version=ledger.SCHEMA_VERSION, wake_at=state.at,
    )  # fmt: skip


def _begin(run: Run, one: Verified, person: User) -> None:
    now = max(database_now(), one.state.at)
    event = e.RunTakenIn(
        tenant=str(run.tenant_id),
        principal=str(person.pk),
        lent=_lent(run, person, now),
        projected=PROJECTED,
        **one.event,
    )
    state = ledger.append(None, [event], actor=person_actor(person), now=now)
    ledger.place(state)
    if asked := _asked_anew(run, state, now):
        write(state, asked, run=run, actor=person_actor(person), now=now)
    if state.state not in s.TERMINAL:
        wake_on_commit(run_id=run.pk, agent=run.agent.name, version=run.agent_version)


def _lent(run: Run, person: User, now: datetime) -> e.Lent | None:
    """On a grant of its own; none where this process does not know what the agent's tools are."""
    code = agents.registered().get((run.agent.name, run.agent_version))
    if code is None:
        return None
    scopes = grants.scopes_of(code)
    return grants.as_lent(grants.lend(principal=person, agent=run.agent, scopes=scopes, now=now))


def _asked_anew(run: Run, state: s.RunState, now: datetime) -> decide.Events:
    """The request for the plan that waited for approval, where this process has the agent that knows whom to ask."""
    code = agents.registered().get((run.agent.name, run.agent_version))
    if code is None or state.plan is None or state.state is not s.State.WAITING_APPROVAL:
        return ()
    asks = planning.requirement(state, code, state.plan.plan)
    return decide.ask_anew(state, requirement=asks, request=str(uuid4()), now=now)
