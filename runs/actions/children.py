"""Starting the runs that a step starts, in the transaction that holds its ChildStarted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.utils.translation import gettext as _

from runs import agents, sources, versions
from runs.ledger import append
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.constraints import identity
from runs.machine.projection import PROJECTED
from runs.machine.transitions import Refused
from runs.models import Agent, Run
from runs.outbox import wake_on_commit


class CodeMissing(Refused):
    """A run cannot be started: its agent's version is not registered in this process. Nothing changed."""

    def __init__(self, child: e.ChildStarted) -> None:
        self.child = child
        super().__init__(None, e.ChildStarted.__name__)

    def __str__(self) -> str:
        return _(
            "%(agent)s, version %(version)s, is not installed here, so its run was not started. Install it and try "
            "again, or let the agent plan anew."
        ) % {"agent": self.child.agent, "version": self.child.agent_version}


def start(parent: s.RunState, started: Sequence[e.ChildStarted], *, run: Run, now: datetime) -> None:
    """Make each child's row and its first event. Raises CodeMissing."""
    for child in started:
        _start(parent, child, run, now)


def _start(parent: s.RunState, child: e.ChildStarted, run: Run, now: datetime) -> None:
    code = agents.registered().get((child.agent, child.agent_version))
    if code is None:
        raise CodeMissing(child)
    agent = Agent.objects.get(tenant_id=run.tenant_id, name=child.agent)
    at = max(now, parent.at)
    Run.objects.create(
        id=child.run, tenant_id=run.tenant_id, agent=agent, agent_version=child.agent_version,
        lineage=parent.identity.lineage, parent=run, goal=child.goal, start_key=_start_key(child),
        principal_id=run.principal_id, grant_id=parent.grant or None,
        created_at=at, since=at, at=at, wake_at=at, state=s.State.PLANNING.value,
    )  # fmt: skip
    append(None, [_started(parent, child, code, run)], actor=_actor(parent), now=at)
    wake_on_commit(run_id=child.run, agent=child.agent, version=child.agent_version)


def _started(parent: s.RunState, child: e.ChildStarted, code: agents.Agent, run: Run) -> e.RunStarted:
    """The child accepts its own agent's constraints and all that its parent accepted. What the lineage did stands: the
    guard of each send finds it.
    """
    known = parent.identity
    own = sources.terms_for(code, tenant_id=run.tenant_id)
    stated = {identity(term) for term in own}
    theirs = tuple(c.term for c in parent.constraints if c.stands and identity(c.term) not in stated)
    terms = (*own, *theirs)
    return e.RunStarted(
        run=child.run, tenant=known.tenant, agent=child.agent, agent_version=child.agent_version, goal=child.goal,
        input=child.input, creator=known.creator, principal=known.principal, lineage=known.lineage,
        start_key=_start_key(child), constraints=terms,
        confirmed=sources.confirmed(parent, terms), deadline=known.deadline, budget=child.budget,
        parent=known.run, parent_step=child.step, depth=known.depth + 1, rounds=dict(parent.rounds),
        keys=decide.keys_to_go_on(parent), code=versions.recorded(code), history_lost=parent.history_lost,
        lent=parent.lendings[-1].lent if parent.lendings else None, sensitive=tuple(sorted(code.sensitive)),
        projected=PROJECTED,
    )  # fmt: skip


def _start_key(child: e.ChildStarted) -> str:
    return f"child {child.run}"


def _actor(parent: s.RunState) -> e.Actor:
    return e.Actor(e.ActorKind.AGENT, parent.identity.run, parent.identity.agent)
