"""Between planner and machine: the view a planner is given, and `validate`, which makes its plan a document."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.conf import settings

from approvals import policy
from runs import agents
from runs.machine import decide
from runs.machine import state as s
from runs.machine.canonical import Uncanonical, canonical, digest, parse
from runs.tools import ArgumentsRefused, WritingTool


class ProposalInvalid(Exception):
    """The proposal is not allowed: nothing moved, the planner is asked again. `problems` are sentences."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


def view_of(state: s.RunState, now: datetime) -> agents.View:
    """All that a planner may know, rebuilt from the state; nothing that is out of date."""
    current = (o for o in state.observations.values() if o.expires_at > now)
    return agents.View(
        run=state.identity.run,
        goal=state.goal.text,
        input=parse(state.identity.input),
        constraints=tuple(c.term.text for c in state.constraints),
        observations=tuple(_observed(o) for o in current),
        standing=tuple(_done(e) for e in state.effects.values() if e.status is s.EffectStatus.CONFIRMED),
        advice=state.advice,
        voided=_why_voided(state),
        next_version=len(state.plans) + 1,
    )


def _observed(observation: s.Observation) -> agents.Observed:
    return agents.Observed(
        tool=observation.tool,
        arguments=parse(observation.arguments),
        value=parse(observation.value),
        resource=observation.resource,
        version=observation.version,
        observed_at=observation.observed_at,
    )


def _done(effect: s.Effect) -> agents.Done:
    return agents.Done(
        step=effect.step,
        tool=effect.tool,
        operation_id=effect.operation_id,
        arguments=parse(effect.arguments),
        reference=effect.receipt.reference if effect.receipt else "",
    )


def _why_voided(state: s.RunState) -> str | None:
    if state.plan is None or not state.plan.voided:
        return None
    return "; ".join(f"{c.what} {c.subject}: {c.was} -> {c.now}" for c in state.plan.voided)


def document(state: s.RunState, agent: agents.Agent, plan: agents.Plan, now: datetime) -> s.PlanDocument:
    """`validate`: schemas, canonical arguments, observations that are current. Raises ProposalInvalid."""
    problems: list[str] = []
    steps = [_step(state, agent, step, now, problems) for step in plan.steps]
    names = {step.name for step in plan.steps}
    problems += [
        f"the promise “{p.text}” names a step that is not there"
        for p in plan.promises
        if {p.after, p.by} - names
    ]
    assumptions = tuple(
        s.PlanAssumption(text=a.text, rests_on=_rests(state, a.rests_on, now, problems))
        for a in plan.assumptions
    )
    if problems:
        raise ProposalInvalid(problems)
    return s.PlanDocument(
        run=state.identity.run,
        version=len(state.plans) + 1,
        goal_version=state.goal.version,
        constraints_digest=decide.constraints_digest(state),
        policy_version=agent.policy.version,
        steps=tuple(step for step in steps if step),
        promises=tuple(s.PlanPromise(text=p.text, after=p.after, by=p.by, due=p.due) for p in plan.promises),
        assumptions=assumptions,
    )


def _step(
    state: s.RunState, agent: agents.Agent, step: agents.Step, now: datetime, problems: list[str]
) -> s.PlanStep | None:
    """One step with its arguments as they will be sent; None where it has problems, which are added."""
    try:
        tool = agent.writing(step.tool)
        arguments = tool.validate(step.arguments)
        text = canonical(arguments)
        return _planned(tool, step, arguments, text, _rests(state, step.rests_on, now, problems))
    except (KeyError, StopIteration):
        problems.append(f"{step.name}: there is no writing tool {step.tool}")
    except (ArgumentsRefused, Uncanonical) as error:
        problems.append(f"{step.name}: {error}")
    return None


def _planned(
    tool: WritingTool, step: agents.Step, arguments: dict[str, Any], text: str, rests: tuple[s.PlanRest, ...]
) -> s.PlanStep:
    cost = tool.cost(arguments)
    return s.PlanStep(
        name=step.name,
        tool=tool.name,
        system=tool.system,
        operation_id=tool.operation_id(arguments),
        arguments=text,
        arguments_digest=digest("arguments", binding_text(tool, arguments)),
        title=tool.describe(arguments),
        reversible=tool.reversible,
        phrase="" if tool.reversible else tool.confirm_phrase(arguments),
        volatile=tuple(sorted(tool.volatile)),
        cost=None if cost is None else str(cost),
        rests_on=rests,
    )


def binding_text(tool: WritingTool, arguments: dict[str, Any]) -> str:
    """The canonical text of the arguments that key and digest are of: volatile ones are left out."""
    return canonical({k: v for k, v in arguments.items() if k not in tool.volatile})


def _rests(
    state: s.RunState, reads: Iterable[agents.Read], now: datetime, problems: list[str]
) -> tuple[s.PlanRest, ...]:
    """The observations that are rested on, with the versions they have now."""
    found = []
    for read in reads:
        key = (read.tool, canonical(dict(read.arguments)))
        known = state.observations.get(key)
        if known is None or known.expires_at <= now:
            problems.append(f"{read.tool} {key[1]} was not read, or is out of date")
        else:
            found.append(
                s.PlanRest(tool=key[0], arguments=key[1], resource=known.resource, version=known.version)
            )
    return tuple(found)


def requirement(state: s.RunState, agent: agents.Agent, plan: s.PlanDocument) -> decide.Requirement:
    """What the agent's policy asks for this plan."""
    steps = [
        policy.Step(
            tool=x.tool,
            arguments=parse(x.arguments),
            cost=agent.writing(x.tool).cost(parse(x.arguments)),
            reversible=x.reversible,
        )
        for x in plan.steps
    ]
    asked = policy.requirement(policy=agent.policy, steps=steps)
    return decide.Requirement(
        needed=asked.needed,
        right=asked.right.value,
        stands_for=asked.stands_for or settings.HANDOFF_DURATIONS.approval_stands,
        policy_version=agent.policy.version,
        excluded=_excluded(state, asked.not_by),
    )


def _excluded(state: s.RunState, parties: frozenset[policy.Party]) -> dict[str, str]:
    """The people whom the policy keeps from approving this plan, each with the rule."""
    people = {policy.Party.PRINCIPAL: state.identity.principal, policy.Party.CREATOR: state.identity.creator}
    return {people[party]: party.value for party in sorted(parties) if party in people}
