"""`validate` for the steps of a plan that wait: timers, signals, child runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import msgspec
from django.utils.text import Truncator

from accounts.models import User
from accounts.rights import Right, may
from runs import agents
from runs.limits import LONGEST_GOAL
from runs.machine import state as s
from runs.machine.canonical import Uncanonical, canonical, digest, plain
from runs.machine.waits import DEEPEST, PlanChild, PlanWait, WaitKind
from runs.models import Agent

SIGNAL_NAME = re.compile(r"[a-z][a-z0-9_.:-]{0,99}")
MOST_CHILDREN = 100
LONGEST_WAIT = timedelta(days=3650)

Waiting = agents.Timer | agents.Signal | agents.Children


def step(state: s.RunState, proposed: Waiting, problems: list[str]) -> s.PlanStep | None:
    """A waiting step as it stands in the plan; None where it has problems, which are added."""
    found = list(_problems(state, proposed))
    problems += [plain(f"{proposed.name}: {problem}") for problem in found]
    if found:
        return None
    try:
        return _planned(proposed)
    except (Uncanonical, TypeError, ValueError) as error:
        problems.append(plain(f"{proposed.name}: {error}"))
    return None


def _problems(state: s.RunState, proposed: Waiting) -> Iterator[str]:
    if not proposed.name.strip() or len(proposed.name) > 200 or plain(proposed.name) != proposed.name:
        yield "this cannot be the name of a step"
    match proposed:
        case agents.Timer():
            yield from _timer_problems(proposed)
        case agents.Signal():
            yield from _signal_problems(proposed)
        case agents.Children():
            yield from _children_problems(state, proposed)


def _timer_problems(timer: agents.Timer) -> Iterator[str]:
    if (timer.length is None) == (timer.until is None):
        yield "a timer has either a length or a moment"
    if timer.length is not None and not timedelta() <= timer.length <= LONGEST_WAIT:
        yield "a timer's length is not below zero and not above ten years"
    if timer.until is not None and timer.until.tzinfo is None:
        yield "a timer's moment has a time zone"


def _signal_problems(signal: agents.Signal) -> Iterator[str]:
    if not SIGNAL_NAME.fullmatch(signal.signal):
        yield f"{signal.signal[:100]!r} cannot be the name of a signal"
    if signal.within is not None and not timedelta() < signal.within <= LONGEST_WAIT:
        yield "the time for a signal is above zero and not above ten years"


def _children_problems(state: s.RunState, step: agents.Children) -> Iterator[str]:
    names = [child.name for child in step.runs]
    if not 0 < len(names) <= MOST_CHILDREN:
        yield f"a step starts from 1 to {MOST_CHILDREN} runs"
    if len(set(names)) != len(names):
        yield "two of its runs have one name"
    if state.identity.depth >= DEEPEST:
        yield f"runs may start runs {DEEPEST} deep, no deeper"
    for child in step.runs:
        yield from (f"{child.name}: {problem}" for problem in _child_problems(state, child))


def _child_problems(state: s.RunState, child: agents.ChildRun) -> Iterator[str]:
    if not child.name.strip() or len(child.name) > 100 or plain(child.name) != child.name:
        yield "this cannot be the name of a run"
    if not child.goal.strip() or len(child.goal) > LONGEST_GOAL:
        yield f"a goal has from 1 to {LONGEST_GOAL} characters"
    if state.identity.budget is not None and child.budget is None:
        yield "the run has a budget, so each run that it starts needs one"
    if child.budget is not None and child.budget < 0:
        yield "a budget is not below zero"
    if _code(child) is None:
        yield f"there is no agent {child.agent} {child.version}"
    elif not _may_start(state, child):
        yield f"the person on whose behalf this run acts may not start runs of {child.agent}"


def _may_start(state: s.RunState, child: agents.ChildRun) -> bool:
    agent = Agent.objects.filter(tenant_id=state.identity.tenant, name=child.agent).first()
    person = User.objects.get(pk=state.identity.principal)
    return agent is not None and may(person, Right.START_RUNS, agent)


def _code(child: agents.ChildRun) -> agents.Agent | None:
    if child.version:
        return agents.registered().get((child.agent, child.version))
    return agents.newest(child.agent)


def _planned(proposed: Waiting) -> s.PlanStep:
    wait = _wait(proposed)
    text = canonical({k: v for k, v in msgspec.to_builtins(wait).items() if v not in (None, "", [])})
    costs = [Decimal(c.budget) for c in wait.children if c.budget is not None]
    return s.PlanStep(
        name=proposed.name, tool="", system="handoff", operation_id=f"wait:{proposed.name}", arguments=text,
        arguments_digest=digest("wait", text), title=_title(proposed), reversible=True, phrase="", volatile=(),
        cost=str(sum(costs)) if costs else None, rests_on=(), wait=wait, sensitive=_sensitive(proposed),
    )  # fmt: skip


def _sensitive(proposed: Waiting) -> tuple[str, ...]:
    """Of runs to start: which paths of their input their agents named, as `agent:path`."""
    runs = proposed.runs if isinstance(proposed, agents.Children) else ()
    known = ((child.agent, code) for child in runs if (code := _code(child)))
    return tuple(sorted({f"{name}:{path}" for name, code in known for path in code.sensitive}))


def _wait(proposed: Waiting) -> PlanWait:
    match proposed:
        case agents.Timer():
            return PlanWait(kind=WaitKind.TIMER, length=proposed.length, until=proposed.until)
        case agents.Signal():
            return PlanWait(kind=WaitKind.SIGNAL, signal=proposed.signal, length=proposed.within)
        case agents.Children():
            return PlanWait(kind=WaitKind.CHILDREN, children=tuple(_child(c) for c in proposed.runs))


def _child(child: agents.ChildRun) -> PlanChild:
    code = _code(child)
    assert code is not None
    return PlanChild(
        name=child.name, agent=child.agent, version=code.version, goal=plain(child.goal),
        input=canonical(dict(child.input)), budget=None if child.budget is None else str(child.budget),
    )  # fmt: skip


def _title(proposed: Waiting) -> str:
    """A short line for people, as a tool's `describe`."""
    match proposed:
        case agents.Timer(length=length, until=until):
            return f"wait {length}" if until is None else f"wait until {until.isoformat()}"
        case agents.Signal(signal=signal):
            return f"wait for the answer {signal}"
        case agents.Children(runs=runs):
            goals = "; ".join(plain(c.goal) for c in runs)
            return Truncator(f"run {len(runs)} × {runs[0].agent}: {goals}").chars(200)
