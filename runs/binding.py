"""Whether a request still speaks of what is true now: compared before a person's decision is recorded."""

from __future__ import annotations

from collections.abc import Iterable

from approvals.binding import Change, binding_changes
from approvals.models import Request, RequestState
from runs import planning, sources
from runs.agents import Agent
from runs.machine import decide
from runs.machine import state as s
from runs.machine.canonical import canonical, digest, parse
from runs.machine.constraints import Became


def changed(state: s.RunState, request: Request, agent: Agent | None) -> tuple[Change, ...]:
    """Everything that differs from what the pending request is bound to. Nothing for one that is decided or over:
    what became of it is told by `approvals`. Without the agent's code its policy is left to the worker.
    """
    known = next((r for r in state.requests if r.id == str(request.pk)), None)
    if state.plan is None or known is None or request.state != RequestState.PENDING:
        return ()
    now = digest("plan", state.plan.document)
    conditions = _conditions(state, state.plan, known, now, agent)
    found = binding_changes(request=request, digest=now, conditions=conditions)
    return (*found, *at_source(state, agent), *_moved(request, known), *_observed(state, state.plan))


def at_source(state: s.RunState, agent: Agent | None) -> tuple[Change, ...]:
    """Constraints that their source states otherwise by now, or not at all, whether or not the run was told yet. A plan
    that undoes rests on none.
    """
    if state.undoing:
        return ()
    now = sources.standing(agent, state)
    found = [(c, now[c.number]) for c in state.constraints if c.number in now]
    return tuple(
        Change(what=f"constraints.C-{c.number}", before=c.term.text, after=x.term.text if x.term else None)
        for c, x in found
        if x.became in (Became.WITHDRAWN, Became.AMENDED)
    )


def _conditions(
    state: s.RunState, plan: s.PlanVersion, known: s.Request, now: str, agent: Agent | None
) -> str:
    """The conditions as they would be written now."""
    if agent is None:
        rules = planning.policy_if_known(state, None)
        return known.conditions if rules is None else _under(rules.version, known.conditions)
    requirement = planning.requirement(state, agent, plan.plan)
    rounds = decide.rounds_of(state, plan.plan)
    return decide.conditions(plan.plan, now, requirement, known.expires_at, rounds)


def _under(policy_version: str, conditions: str) -> str:
    """The same conditions under that policy, of which no more is known here."""
    return canonical({**parse(conditions), "policy_version": policy_version})


def _moved(request: Request, known: s.Request) -> tuple[Change, ...]:
    """The row against the event that it was made from: the time, and the digest of the conditions."""
    pairs = {
        "expires_at": (known.expires_at.isoformat(), request.expires_at.isoformat()),
        "conditions_digest": (known.conditions_digest, digest("conditions", request.conditions)),
    }
    return tuple(Change(what=what, before=a, after=b) for what, (a, b) in pairs.items() if a != b)


def never_read(state: s.RunState) -> tuple[s.PlanRest, ...]:
    """What the plan rests on and the run has no observation of."""
    rests = _rests(state.plan) if state.plan else ()
    return tuple(r for r in rests if (r.tool, r.arguments) not in state.observations)


def _rests(plan: s.PlanVersion) -> Iterable[s.PlanRest]:
    return {(r.tool, r.arguments): r for step in plan.plan.steps for r in step.rests_on}.values()


def _observed(state: s.RunState, plan: s.PlanVersion) -> tuple[Change, ...]:
    """Resources that the run has seen at another version since the plan was made."""
    found = []
    for rest in _rests(plan):
        seen = state.observations.get((rest.tool, rest.arguments))
        bound = state.produced.get(rest.resource, rest.version)
        if seen and seen.version != bound:
            found.append(Change(what=f"resource_versions.{rest.resource}", before=bound, after=seen.version))
    return tuple(found)
