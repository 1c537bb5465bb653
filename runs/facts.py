"""Gathers what a decision needs to know from outside the machine: rights, versions, freshness, sources.

What asks other systems (`read_needed`) is called outside every transaction; the rest reads the database.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import msgspec
from django.conf import settings

from accounts.models import User
from approvals.standing import can_be_granted, standing
from runs import artifacts, configuration, grants, planning, rereduction, sources, telling, versions
from runs.agents import Agent, registered
from runs.ledger import Guard
from runs.limits import LONGEST_NAME
from runs.machine import state as s
from runs.machine.canonical import canonical, parse, plain
from runs.machine.events import ArtifactKept, ObservationRecorded, raw
from runs.machine.revalidate import Facts, Fresh, Person, Unmet, needed_rests
from runs.models import Run
from runs.prepared import Prepared
from runs.sources import held
from runs.tools import ReadingTool, Unreadable
from runs.verified import chain_problem_since

log = logging.getLogger(__name__)
_NONE: Final[Mapping[str, timedelta]] = MappingProxyType({})


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """What reading one source gave, and the event that keeps it; no event where it could not be read.

    `kept` ties a long value to the run, of which `event` holds only the beginning.
    """

    fresh: Fresh
    event: ObservationRecorded | None = None
    kept: ArtifactKept | None = None


def read_once(
    tool: ReadingTool,
    arguments: str,
    now: datetime,
    *,
    tenant: str,
    half_lives: Mapping[str, timedelta] = _NONE,
) -> Read:
    """Read one external fact now. `now` is taken for the moment of observation, since it is before the call.

    A long value is kept as an artifact of the tenant. `half_lives` are the agent's, by kind of resource.
    """
    timeout: timedelta = tool.timeout or settings.HANDOFF_DURATIONS.tool_timeout
    try:
        reading = tool.read(parse(arguments), timeout=timeout)
        value = canonical(reading.value)
    except Unreadable as error:
        why = telling.without(tool, (arguments,), str(error))
        return Read(fresh=Fresh(failure=plain(why) or "it could not be read"))
    except Exception as error:
        # A fault in an adapter, or a value that nothing can be compared with: to the run it is the same.
        log.exception("the reading tool failed", extra={"tool": tool.name})
        why = telling.without(tool, (arguments,), f"{type(error).__name__}: {error}")
        return Read(fresh=Fresh(failure=plain(why)))
    if telling.names_hidden(tool, (arguments, value), f"{reading.resource} {reading.version}"):
        return Read(
            fresh=Fresh(failure="the tool made the name or version of a resource of a sensitive value")
        )
    about = plain(telling.asked(tool, arguments))[:LONGEST_NAME]
    value, kept = artifacts.shortened(tenant, value, name=f"{tool.name}.json", kind="evidence", about=about)
    event = ObservationRecorded(
        tool=tool.name, arguments=raw(arguments), value=raw(value), resource=plain(reading.resource),
        version=plain(reading.version), observed_at=now,
        half_life=half_life_of(tool, reading.resource, half_lives),
        sensitive=tuple(sorted(tool.sensitive)),
    )  # fmt: skip
    return Read(fresh=Fresh(value=value, version=event.version), event=event, kept=kept)


def half_life_of(tool: ReadingTool, resource: str, half_lives: Mapping[str, timedelta]) -> timedelta:
    """How long a value may be taken for current: as the operator says of that kind of resource, else the agent, else
    the tool.
    """
    kind = resource.partition(":")[0]
    said: timedelta | None = settings.HANDOFF_HALF_LIVES.get(kind)
    return said or half_lives.get(kind) or tool.half_life


def ask_sources(agent: Agent | None) -> None:
    """Ask what the agent's constraints come from outside; what it says is kept, or why it could not be asked."""
    if agent is not None:
        configuration.ask_all(agent)


def read_needed(state: s.RunState, agent: Agent, now: datetime) -> dict[tuple[str, str], Read]:
    """The working set of the rest of the plan, read from the systems it belongs to."""
    return {
        (r.tool, r.arguments): read_once(
            agent.reading(r.tool), r.arguments, now, tenant=state.identity.tenant, half_lives=agent.half_lives
        )
        for r in needed_rests(state)
    }


def gather(
    state: s.RunState, run: Run, agent: Agent | None, fresh: Mapping[tuple[str, str], Fresh], now: datetime
) -> Facts:
    """The facts of a revalidation, rights and sources read now."""
    approvers, others, unmet = _approvers(state, now)
    lost, granted = grants.still_lent(state)
    return Facts(
        log_problem=chain_problem_since(run.pk),
        rows_differ=rereduction.first_difference(state),
        history=history_of(run.pk),
        schema_version=run.schema_version,
        code=agent.version if agent else "",
        parts=versions.recorded(agent) if agent else {},
        constraints_now=sources.standing(agent, state),
        stated=sources.stated_since(agent, state),
        approvers=approvers,
        others_may_approve=others,
        unmet=unmet,
        principal=_principal(state, lost),
        granted=granted,
        policy_version=planning.policy_for(state, agent).version if agent else "",
        fresh=fresh,
    )


_HISTORY = Prepared(
    name="handoff_history_of",
    sql="""SELECT json_build_array(
        coalesce((SELECT c.history FROM runs_claim c WHERE c.run_id = %s ORDER BY c.token DESC LIMIT 1), ''),
        handoff_history())::text""",
)
_history = msgspec.json.Decoder(tuple[str, str]).decode


def history_of(run_id: str) -> tuple[str, str]:
    """The database's history under the run's latest claim (empty: it had none), and now."""
    return _history(_HISTORY.call([run_id]) or "")


def _approvers(state: s.RunState, now: datetime) -> tuple[tuple[Person, ...], bool, tuple[Unmet, ...]]:
    """Those who approved, with what they lost; whether enough people are left who may approve; what groups lack."""
    request = state.request
    if request is None or request.status is not s.RequestStatus.VALID:
        return (), True, ()
    stands = standing(request_id=request.id, now=now)
    people = [Person(id=str(p.pk), name=p.shown_name) for p in stands.holding]
    people += [Person(id=str(x.person.pk), name=x.person.shown_name, lost=x.why) for x in stands.lapsed]
    unmet = tuple(
        Unmet(groups=", ".join(m.quorum.groups), needed=m.quorum.needed, given=m.given) for m in stands.unmet
    )
    # Whether others may approve matters only where the approval does not hold.
    doubted = stands.lost or stands.barred or unmet or len(stands.holding) < request.needed or state.uncovered
    return tuple(people), not doubted or can_be_granted(stands.request), unmet


def _principal(state: s.RunState, lost: str) -> Person:
    """On whose authority the run acts, and what of it is lost."""
    if state.lendings:
        return Person(id=state.principal, name=state.lendings[-1].lent.name, lost=lost)
    person = User.objects.get(pk=state.principal)
    return Person(id=str(person.pk), name=person.shown_name, lost=lost)


def guard_of(
    state: s.RunState,
    run: Run,
    system: str,
    operation_id: str,
    *,
    repeatable: bool = False,
    scopes: tuple[str, ...] = (),
    cost: str | None = None,
) -> Guard:
    """What the next send must find in its own transaction: the approval it rests on, and nobody else's
    claim.
    """
    identity = state.identity
    request = state.request if state.plan and not state.plan.by_policy else None
    return Guard(
        system=system,
        operation_id=operation_id,
        lineage=state.identity.lineage,
        principal=state.principal,
        request=request.id if request else None,
        digest=request.digest if request else "",
        repeatable=repeatable,
        agent=identity.agent,
        policy=state.plan.plan.policy_version if state.plan else "",
        own_policy=registered()[identity.agent, identity.agent_version].policy.version,
        grant=state.grant or None,
        constraints=held.accepted(state),
        configurations=sources.configuration.relied(state),
        scopes=scopes,
        cost=cost,
    )
