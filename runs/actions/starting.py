"""Starting a run, and starting the successor of one that cannot go on."""

from __future__ import annotations

import secrets
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import IntegrityError, connection, transaction

from accounts.fence import fence_shared
from accounts.models import User
from accounts.rights import Right
from runs import access, agents, configuration, grants, sources, versions
from runs.actions import goals
from runs.actions.frame import Done, locked, person_actor, repeated
from runs.actions.writing import write
from runs.clock import database_now
from runs.ledger import append
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical
from runs.machine.obligations import carried_on
from runs.machine.projection import PROJECTED
from runs.models import Agent, Grant, Run, Submission
from runs.outbox import wake_on_commit

ID_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # no I, L, O, U: they are misread


class AlreadyStarted(Exception):
    """A run with this start key exists; nothing was started twice. `run` is that run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        super().__init__(run.pk)


def new_run_id() -> str:
    """`run_` and 12 letters and digits."""
    return "run_" + "".join(secrets.choice(ID_LETTERS) for _ in range(12))


def start_run(
    *,
    agent: Agent,
    version: str,
    goal: str,
    input: dict[str, object],
    start_key: str,
    creator: User,
    principal: User,
    deadline: datetime | None = None,
    budget: Decimal | None = None,
    wake: bool = True,
    grant: Grant | None = None,
) -> Run:
    """Start a run of a registered agent version, on a grant of its principal; None: on one of its own, for all that
    the agent's tools do and bound to no session. Without `wake` the next sweep moves it, as is right for
    thousands at once. Raises AlreadyStarted for a start key that was used before, canonical.Uncanonical for an
    input without canonical form, KeyError for an agent that is not registered, sources.SourceUnknown where
    nobody can say what limits it.
    """
    registered = agents.registered()[(agent.name, version)]
    _ask_outside(registered)
    with transaction.atomic():
        fence_shared(agent.tenant_id)
        now = database_now()
        on = grant or grants.lend(
            principal=principal, agent=agent, scopes=grants.scopes_of(registered), now=now
        )
        run, lent = _new_row(agent, version, goal, start_key, principal, now, on), grants.as_lent(on)
        event = e.RunStarted(
            run=run.pk, tenant=str(agent.tenant_id), agent=agent.name, agent_version=version, goal=goal,
            input=e.raw(canonical(input)), creator=str(creator.pk), principal=str(principal.pk), lineage=run.pk,
            start_key=start_key, deadline=deadline,
            constraints=sources.terms_for(registered, tenant_id=agent.tenant_id),
            budget=None if budget is None else str(budget), code=versions.recorded(registered), lent=lent,
            sensitive=tuple(sorted(registered.sensitive)), projected=PROJECTED,
        )  # fmt: skip
        append(None, [event], actor=person_actor(creator), now=now)
        if wake:
            wake_on_commit(run_id=run.pk, agent=agent.name, version=version)
    return run


def _ask_outside(code: agents.Agent) -> None:
    """Hear what its constraints are. Inside a transaction nothing outside is asked: what was last heard counts."""
    if not connection.in_atomic_block:
        configuration.ask_all(code)


def _new_row(
    agent: Agent, version: str, goal: str, start_key: str, principal: User, now: datetime, grant: Grant
) -> Run:
    id_ = new_run_id()
    try:
        with transaction.atomic():
            return Run.objects.create(
                id=id_, tenant_id=agent.tenant_id, agent=agent, agent_version=version, lineage=id_, goal=goal,
                start_key=start_key, principal=principal, created_at=now, since=now, at=now, wake_at=now,
                state=s.State.PLANNING.value, grant=grant,
            )  # fmt: skip
    except IntegrityError as error:
        first = Run.objects.filter(tenant_id=agent.tenant_id, agent=agent, start_key=start_key).first()
        if first is None:
            raise
        raise AlreadyStarted(first) from error


def restart_run(*, person: User, run_id: str, note: str, submission: UUID) -> Done:
    """Close the run and start its one successor, in one transaction. `Done.run` is the successor.

    It takes over the committed goal, the constraints in force, open obligations, and what stands; no approval. Raises
    Refused where something is in flight or unknown, or where the run has ended or been restarted already.
    """
    _ask_outside(_version_for(access.run_for(person, run_id))[1])
    with transaction.atomic():
        run, state, now = locked(person, run_id, Right.RESTART_RUNS)
        if repeated(submission, person, "restart"):
            return Done(run=state.successor, seq=state.seq, repeated=True)
        successor = new_run_id()
        closed = write(
            state,
            decide.restarted(state, successor=successor, note=note),
            run=run,
            actor=person_actor(person),
            now=now,
        )
        _start_successor(run, closed, successor, person, now)
        Submission.objects.create(
            id=submission,
            tenant_id=run.tenant_id,
            run=run,
            person=person,
            action="restart",
            seq=closed.seq,
            at=now,
        )
    return Done(run=successor, seq=closed.seq)


def _start_successor(run: Run, closed: s.RunState, successor: str, person: User, now: datetime) -> None:
    version, code = _version_for(run)
    terms = sources.for_successor(closed, code)
    key = f"restart of {run.pk}"
    Run.objects.create(
        id=successor, tenant_id=run.tenant_id, agent=run.agent, agent_version=version, lineage=run.lineage,
        predecessor=run, parent_id=run.parent_id,
        goal=closed.goal.text, start_key=key, principal=run.principal, created_at=now, since=now,
        at=now, wake_at=now, state=s.State.PLANNING.value, grant_id=closed.grant or None,
    )  # fmt: skip
    event = e.RunStarted(
        run=successor, tenant=str(run.tenant_id), agent=run.agent.name, agent_version=version, goal=closed.goal.text,
        input=e.raw(closed.identity.input), creator=str(person.pk), principal=closed.identity.principal,
        lineage=run.lineage, start_key=key, code=versions.recorded(code), history_lost=closed.history_lost,
        constraints=terms, exempt=sources.exempt(closed), confirmed=sources.confirmed(closed, terms),
        deadline=closed.identity.deadline, budget=_rest_of_budget(closed), predecessor=run.pk,
        inherited=decide.standing(closed), rounds=decide.rounds_to_go_on(closed), keys=decide.keys_to_go_on(closed),
        obligations=carried_on(closed),
        goal_taken=goals.taken(closed),
        lent=closed.lendings[-1].lent if closed.lendings else None, sensitive=closed.identity.sensitive,
        parent=closed.identity.parent, parent_step=closed.identity.parent_step, depth=closed.identity.depth,
        projected=PROJECTED,
        signals=tuple(
            e.SignalKept(id=x.id, name=x.name, payload=e.raw(x.payload), by=x.by, at=x.at) for x in closed.signals
        ),
    )  # fmt: skip
    append(None, [event], actor=person_actor(person), now=now)
    wake_on_commit(run_id=successor, agent=run.agent.name, version=version)


def _rest_of_budget(closed: s.RunState) -> str | None:
    """A successor may spend what its predecessor left."""
    left = closed.left(())
    return None if left is None else str(left)


def _version_for(run: Run) -> tuple[str, agents.Agent]:
    """The run's own agent version where this process has it, else the newest one that it has. Raises KeyError."""
    own = agents.registered().get((run.agent.name, run.agent_version))
    code = own or agents.newest(run.agent.name)
    if code is None:
        raise KeyError(run.agent.name)
    return code.version, code
