"""Between planner and machine: the view a planner is given, and `validate`, which makes its plan a document."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
from django.conf import settings
from django.db.models import Q
from msgspec.structs import replace

from approvals import held, policy
from runs import agents, judging, planning_late, predicates, telling, waiting
from runs.machine import decide, late, proposals
from runs.machine import state as s
from runs.machine.canonical import Uncanonical, canonical, digest, parse, plain
from runs.machine.events import (
    Actor,
    ActorKind,
    AmendmentAccepted,
    Broken,
    ConstraintWithdrawn,
    Inherited,
    Quorum,
    Unpassed,
    text_of,
)
from runs.machine.waits import Child, Signal
from runs.models import Event, Statement
from runs.tools import ArgumentsRefused, WritingTool

log = logging.getLogger(__name__)
#: What takes a limit away from a run, or changes it.
_REVOKES = (ConstraintWithdrawn.__name__, AmendmentAccepted.__name__)

LONGEST_NAME = 200
#: Leaves room for the suffix of a round.
OPERATION_ID = re.compile(r"\S{1,280}")


class ProposalInvalid(Exception):
    """The proposal is not allowed: nothing moved, the planner is asked again. `problems` are sentences."""

    def __init__(self, problems: Iterable[str], broken: Iterable[Broken] = ()) -> None:
        self.broken = tuple(broken)  #: the constraints that it does not keep
        self.problems = (*problems, *map(predicates.sentence, self.broken))
        super().__init__("; ".join(self.problems))


def view_of(state: s.RunState, now: datetime) -> agents.View:
    """All that a planner may know, rebuilt from the state; nothing that is out of date."""
    current = (o for o in state.observations.values() if o.current(now))
    return agents.View(
        run=state.identity.run,
        goal=state.goal.text,
        input=parse(state.identity.input),
        constraints=tuple(c.term.text for c in state.constraints),
        accepted=tuple(_accepted(c) for c in state.constraints if not c.withdrawn),
        observations=tuple(_observed(o) for o in current),
        standing=tuple(_done(x) for x in decide.standing(state)),
        advice=proposals.answers(state),
        voided=_why_voided(state),
        next_version=len(state.plans) + 1,
        obligations=tuple(o.text for o in state.open_obligations),
        signals=tuple(_signalled(x) for x in state.signals),
        children=tuple(_child(x) for x in state.children.values()),
        proposed_constraints=tuple(_asked(x) for x in proposals.proposed_constraints(state)),
    )


def _accepted(constraint: s.Constraint) -> agents.Accepted:
    term = constraint.term
    return agents.Accepted(
        number=constraint.number, text=term.text, source=term.source_kind, name=term.name,
        predicate=term.predicate, confirmed=not constraint.unconfirmed,
    )  # fmt: skip


def _asked(found: proposals.ProposedConstraint) -> agents.ProposedConstraint:
    return agents.ProposedConstraint(
        number=found.number, text=found.text, by=found.name, at=found.at, version=found.version
    )


def _signalled(signal: Signal) -> agents.Signalled:
    return agents.Signalled(name=signal.name, payload=parse(signal.payload), by=signal.by.name, at=signal.at)


def _child(child: Child) -> agents.ChildResult:
    return agents.ChildResult(
        run=child.run, step=child.step, name=child.name, agent=child.agent, ended=child.ended
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


def _done(stands: Inherited) -> agents.Done:
    return agents.Done(
        step=stands.step,
        tool=stands.tool,
        operation_id=stands.operation_id,
        arguments=parse(text_of(stands.arguments)),
        reference=stands.reference,
    )


def _why_voided(state: s.RunState) -> str | None:
    if state.plan is None or not state.plan.voided:
        return None
    return "; ".join(f"{c.what} {c.subject}: {c.was} -> {c.now}" for c in state.plan.voided)


def document(state: s.RunState, agent: agents.Agent, plan: agents.Plan, now: datetime) -> s.PlanDocument:
    """`validate`: schemas, canonical arguments, observations that are current, constraints. Raises ProposalInvalid."""
    problems: list[str] = []
    steps = [
        _step(state, agent, x, {y.name: y for y in plan.steps[:place]}, now, problems)
        if isinstance(x, agents.Step)
        else waiting.step(state, x, problems)
        for place, x in enumerate(plan.steps)
    ]
    problems += _named_by_hidden(state, [step for step in steps if step])
    names = {step.name for step in plan.steps}
    problems += [
        f"the promise “{p.text}” names a step that is not there"
        for p in plan.promises
        if {p.after, p.by} - names
    ]
    problems += _unknown(state, plan)
    assumptions = tuple(
        s.PlanAssumption(
            text=plain(a.text),
            rests_on=_rests(state, agent, a.rests_on, now, problems),
            constraints=_limits(state, a, problems),
        )
        for a in plan.assumptions
    )
    problems += _twice(assumptions)
    rules = policy_for(state, agent)
    problems += _too_many(rules, steps)
    if problems:
        raise ProposalInvalid(problems)
    made = s.PlanDocument(
        run=state.identity.run,
        version=len(state.plans) + 1,
        goal_version=state.goal.version,
        constraints_digest=decide.constraints_digest(state),
        policy_version=rules.version,
        steps=tuple(step for step in steps if step),
        promises=tuple(
            s.PlanPromise(text=plain(p.text), after=p.after, by=p.by, due=p.due) for p in plan.promises
        ),
        assumptions=assumptions,
        more=plan.more,
    )
    if broken := predicates.broken(state, made):
        raise ProposalInvalid((), broken)
    return made


def cannot_be_undone(steps: Iterable[s.PlanStep]) -> int:
    """How many changes of a plan cannot be undone."""
    return sum(step.wait is None and not step.reversible for step in steps)


def _too_many(rules: policy.Policy, steps: Iterable[s.PlanStep | None]) -> list[str]:
    """More changes that cannot be undone than the policy lets people decide at once."""
    most = policy.most_irreversible(rules)
    found = cannot_be_undone(step for step in steps if step)
    if most is None or found <= most:
        return []
    return [
        f"the plan holds {found} changes that cannot be undone, and the policy {rules.version} allows {most} in one "
        "plan: split it, and propose the others once these are done"
    ]


def _unknown(state: s.RunState, plan: agents.Plan) -> list[str]:
    """Proposed constraints that the plan takes and that nobody proposed."""
    known = {asked.number for asked in proposals.proposed_constraints(state)}
    return [
        plain(f"nobody proposed a constraint {x}, which the plan takes") for x in plan.takes if x not in known
    ]


def _step(
    state: s.RunState,
    agent: agents.Agent,
    step: agents.Step,
    before: dict[str, object],
    now: datetime,
    problems: list[str],
) -> s.PlanStep | None:
    """One step with its arguments as they will be sent; None where it has problems, which are added."""
    try:
        tool = agent.writing(step.tool)
        rests = _rests(state, agent, step.rests_on, now, problems)
        open_ = planning_late.opened(step.arguments)
        if open_.late:
            made = _left_open(agent, tool, step.name, open_, before, rests)
        else:
            arguments = tool.validate(step.arguments)
            made = planned(tool, step.name, arguments, canonical(arguments), rests)
    except (KeyError, StopIteration):
        problems.append(plain(f"{step.name}: there is no writing tool {step.tool}"))
    except (ArgumentsRefused, Uncanonical, planning_late.LateRefused) as error:
        problems.append(plain(f"{step.name}: {told(tool, error)}"))
    except Exception as error:
        # A tool is foreign code: whatever it makes of these arguments, nothing happened.
        log.exception("the tool failed on a proposal", extra={"tool": step.tool})
        problems.append(plain(f"{step.name}: {type(error).__name__}: {told(tool, error)}"))
    else:
        problems += _unstorable(made)
        return made
    return None


def _left_open(
    agent: agents.Agent,
    tool: WritingTool,
    name: str,
    open_: planning_late.Open,
    before: dict[str, object],
    rests: tuple[s.PlanRest, ...],
) -> s.PlanStep:
    """A step some of whose arguments come later: one operation at every corner of the bounds, as dear as the dearest.

    Raises planning_late.LateRefused.
    """
    cases = [tool.validate(case) for case in open_.cases()]
    known = {canonical(late.without(case, open_.late)) for case in cases}
    if len(known) > 1 or len({tool.operation_id(case) for case in cases}) > 1:
        raise planning_late.LateRefused(
            "what it does, and not how much, depends on an argument that is left open"
        )
    dearest = max(cases, key=lambda case: tool.cost(case) or Decimal())
    open_parts = planning_late.planned(open_, dearest, before)
    _readable(agent, open_parts)
    step = planned(tool, name, dearest, canonical(dearest), rests)
    (text,) = known
    shown = late.merged(parse(text), ((x.path, late.written(x.bounds)) for x in open_parts))
    bound = canonical([binding_text(tool, parse(text)), msgspec.to_builtins(open_parts)])
    return replace(
        step, arguments=text, arguments_digest=digest("arguments", bound), late=open_parts,
        title=_title(tool, shown) or step.title,
    )  # fmt: skip


def _title(tool: WritingTool, shown: dict[str, Any]) -> str:
    """What the step does, with bounds where values will be; empty where the tool cannot say it of such texts."""
    try:
        return plain(tool.describe(shown))
    except Exception:
        # It is told of texts where it may expect numbers; the title is made of the dearest values then.
        log.info("the tool cannot describe open arguments", exc_info=True, extra={"tool": tool.name})
        return ""


def _readable(agent: agents.Agent, open_parts: tuple[late.PlanLate, ...]) -> None:
    """Raises where a source is a reading that the agent has no tool for, or whose arguments the tool refuses."""
    for source in (x.source for x in open_parts if x.source.kind is late.SourceKind.READING):
        agent.reading(source.tool).validate(parse(source.arguments))


def told(tool: WritingTool, error: Exception) -> str:
    """What is wrong with a proposal; where values are sensitive only where it is wrong, since messages quote them."""
    if not tool.sensitive:
        return str(error)
    if isinstance(error, ArgumentsRefused):
        return "not allowed: " + ", ".join(path for path, _text in error.problems)
    return "the tool does not take these arguments"


def _named_by_hidden(state: s.RunState, steps: list[s.PlanStep]) -> Iterator[str]:
    """Names that everybody is shown, and the goals of runs to start, made of values that not everybody may see."""
    own = (telling.values([x.arguments], x.sensitive) for x in steps if x.wait is None)
    hidden = telling.known(state).union(*own)
    for place, step in enumerate(steps, 1):
        if any(value in f"{step.name} {step.operation_id}" for value in hidden):
            yield f"step {place}: its name or its operation id is made of a sensitive value"
        for child in step.wait.children if step.wait else ():
            if any(value in f"{child.name} {child.goal}" for value in hidden):
                yield f"step {place}: the name or the goal of a run is made of a sensitive value"


def _unstorable(step: s.PlanStep) -> list[str]:
    """Names that no table would take when the effect is about to be sent."""
    problems = []
    if not step.name.strip() or len(step.name) > LONGEST_NAME or plain(step.name) != step.name:
        problems.append(plain(f"{step.name[:LONGEST_NAME]!r} cannot be the name of a step"))
    if not OPERATION_ID.fullmatch(step.operation_id) or plain(step.operation_id) != step.operation_id:
        problems.append(plain(f"{step.name}: {step.operation_id[:300]!r} cannot be an operation id"))
    return problems


def planned(
    tool: WritingTool, name: str, arguments: dict[str, Any], text: str, rests: tuple[s.PlanRest, ...]
) -> s.PlanStep:
    """A step as the plan holds it; `text` is the canonical form of the arguments."""
    cost = tool.cost(arguments)
    return s.PlanStep(
        name=name,
        tool=tool.name,
        system=tool.system,
        operation_id=tool.operation_id(arguments),
        arguments=text,
        arguments_digest=digest("arguments", binding_text(tool, arguments)),
        title=plain(tool.describe(arguments)),
        reversible=tool.reversible,
        phrase="" if tool.reversible else plain(tool.confirm_phrase(arguments)),
        volatile=tuple(sorted(tool.volatile)),
        cost=None if cost is None else str(cost),
        rests_on=rests,
        sensitive=tuple(sorted(tool.sensitive)),
    )


def binding_text(tool: WritingTool, arguments: dict[str, Any]) -> str:
    """The canonical text of the arguments that key and digest are of: volatile ones are left out."""
    return canonical({k: v for k, v in arguments.items() if k not in tool.volatile})


def _rests(
    state: s.RunState, agent: agents.Agent, reads: Iterable[agents.Read], now: datetime, problems: list[str]
) -> tuple[s.PlanRest, ...]:
    """The observations that are rested on, with the versions they have now."""
    found = []
    for read in reads:
        try:
            key = (read.tool, canonical(dict(read.arguments)))
        except (Uncanonical, TypeError, ValueError) as error:
            problems.append(plain(f"{read.tool}: {error}"))
            continue
        known = state.observations.get(key)
        if known is None or not known.current(now):
            problems.append(f"{_reading(agent, *key)} was not read, or is out of date")
        else:
            found.append(
                s.PlanRest(tool=key[0], arguments=key[1], resource=known.resource, version=known.version)
            )
    return tuple(found)


def _limits(state: s.RunState, assumed: agents.Assume, problems: list[str]) -> tuple[int, ...]:
    """The constraints that an assumption rests on, by number."""
    known = {x.term.text: x.number for x in state.constraints if x.withdrawn is None}
    problems += [
        plain(f"the assumption “{assumed.text}” rests on a constraint that the run did not accept: “{text}”")
        for text in assumed.constraints
        if text not in known
    ]
    return tuple(sorted({known[text] for text in assumed.constraints if text in known}))


def _twice(assumptions: tuple[s.PlanAssumption, ...]) -> list[str]:
    """Assumptions that could not be told apart."""
    texts = [x.text for x in assumptions]
    return [f"the assumption “{x}” stands twice" for x in sorted({x for x in texts if texts.count(x) > 1})]


def _reading(agent: agents.Agent, tool: str, arguments: str) -> str:
    known = next((x for x in agent.tools if x.name == tool), None)
    return telling.asked(known, arguments) if known else tool


def requirement(state: s.RunState, agent: agents.Agent, plan: s.PlanDocument) -> decide.Requirement:
    """What the policy in force asks for this plan; a person in any case where authority was lent anew."""
    rules = policy_for(state, agent)
    asked = asked_by(rules, state, plan)
    asks = decide.Requirement(
        needed=asked.needed,
        right=asked.right.value,
        stands_for=asked.stands_for or settings.HANDOFF_DURATIONS.approval_stands,
        policy_version=rules.version,
        excluded=_excluded(state, plan, asked.not_by),
        quorums=tuple(Quorum(needed=q.needed, groups=q.groups) for q in asked.quorums),
        unpassed=tuple(Unpassed(name=c.name, kind=c.kind.value, sentence=c.sentence) for c in asked.failed),
        not_by=tuple(sorted(party.value for party in asked.not_by & _LOOKED_UP)),
    )
    return decide.personally(state, asks)


#: Parties of whom no list could be kept with a request.
_LOOKED_UP = frozenset({policy.Party.OTHER_TENANT})


def policy_for(state: s.RunState, agent: agents.Agent) -> policy.Policy:
    """The policy that counts for this run now: the one that its tenant holds for the agent, else the agent's own."""
    return held.in_force(tenant_id=UUID(state.identity.tenant), agent=agent.name, own=agent.policy)


def policy_if_known(state: s.RunState, agent: agents.Agent | None) -> policy.Policy | None:
    """As `policy_for`, where this process may lack the agent's code: None where that code's own policy counts."""
    own = agent.policy if agent else None
    return held.in_force(tenant_id=UUID(state.identity.tenant), agent=state.identity.agent, own=own)


def asked_by(rules: policy.Policy, state: s.RunState, plan: s.PlanDocument) -> policy.Requirement:
    """What a policy asks for this plan."""
    about = judging.about(state, policy.names_of(rules))
    return policy.requirement(policy=rules, steps=judging.judged_steps(plan, about))


def unpassed(
    state: s.RunState, plan: s.PlanVersion, agent: agents.Agent | None
) -> Sequence[policy.FailedCheck | Unpassed]:
    """The checks that the plan does not pass: as the policy says now, or where its code is not here as it said when
    people were asked.
    """
    if rules := policy_if_known(state, agent):
        return asked_by(rules, state, plan.plan).failed
    request = state.request
    return request.unpassed if request and request.version == plan.version else ()


def _excluded(state: s.RunState, plan: s.PlanDocument, parties: frozenset[policy.Party]) -> dict[str, str]:
    """The people whom the policy keeps from approving this plan, each with the rule."""
    people: dict[policy.Party, Iterable[str]] = {
        policy.Party.PRINCIPAL: (state.identity.principal, state.principal),
        policy.Party.CREATOR: (state.identity.creator,),
        policy.Party.PLAN_AUTHOR: _authors(state, plan),
        policy.Party.GOAL_REVISER: [state.goal_reviser] if state.goal_reviser else [],
        policy.Party.CONSTRAINT_REVOKER: (
            _revokers(state, plan) if policy.Party.CONSTRAINT_REVOKER in parties else ()
        ),
    }
    return {person: party.value for party in sorted(parties) for person in people.get(party, ())}


def _revokers(state: s.RunState, plan: s.PlanDocument) -> Iterable[str]:
    """Those who withdrew or amended a constraint, or accepted an amended one, before the plan was made: in the run's
    lineage, or where constraints of its agent are held.
    """
    known = next((x for x in state.plans if x.version == plan.version), None)
    until = {"at__lte": known.at} if known else {}
    here = Event.objects.filter(
        run__lineage=state.identity.lineage, actor_kind=ActorKind.PERSON.value, type__in=_REVOKES, **until
    )  # fmt: skip
    of_agent = Q(agent=None) | Q(agent__name=state.identity.agent)
    of_run = Q(run=None) | Q(run__lineage=state.identity.lineage)
    at_source = Statement.objects.filter(
        of_agent, of_run, tenant_id=UUID(state.identity.tenant), version__gt=1, **until
    )
    found = {*here.values_list("actor_id", flat=True), *map(str, at_source.values_list("by_id", flat=True))}
    return sorted(found)


def _authors(state: s.RunState, plan: s.PlanDocument) -> Iterable[str]:
    """Those whose words made the plan: who asked for the changes that it followed, or that what was done be undone."""
    if plan.undo:
        return _persons([state.cancelled_by] if state.cancelled_by else [])
    return [x.person for x in proposals.proposed_constraints(state) if x.version < plan.version]


def _persons(actors: Iterable[Actor]) -> list[str]:
    return [actor.id for actor in actors if actor.kind is ActorKind.PERSON]
