"""Waits, signals and child runs: how a wait begins, what ends it, what a child's end means."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from itertools import count

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.decide.common import Events, human
from runs.machine.decide.undoing import keys_to_go_on, rounds_to_go_on, standing
from runs.machine.safety import came
from runs.machine.transitions import Refused, allows
from runs.machine.waits import Child, PlanChild, PlanWait, Wait, WaitKind, child_id, work_of


def begin_wait(state: s.RunState, *, now: datetime) -> Events:
    """The next step is a wait: it begins, with the child runs that it starts. Raises Refused where it is none."""
    step = state.remaining[0] if state.remaining else None
    if (
        state.state is not s.State.EXECUTING
        or state.open_effects
        or step is None
        or step.wait is None
        or state.outdated
    ):
        raise Refused(state.state, "WaitBegan")
    if state.identity.deadline and now > state.identity.deadline:
        return human("deadline_passed", evidence=state.identity.deadline.isoformat())
    known = state.waits.get(step.name)
    if known and known.ended_seq is not None and known.digest == step.arguments_digest:
        return (e.WaitEnded(step=step.name),)  # an earlier plan waited for the same
    started = _children(state, step, step.wait)
    return _too_dear(state, step.name, started) or (*started, _begun(step, step.wait, now))


def _too_dear(state: s.RunState, step: str, started: tuple[e.ChildStarted, ...]) -> Events:
    """A person, where the budget does not cover what these runs may spend."""
    left = state.left(())
    if left is None:
        return ()
    left -= sum((Decimal(x.budget) for x in started if x.budget is not None), Decimal())
    return human("budget_exhausted", subject=step, evidence=str(left)) if left < 0 else ()


def _begun(step: s.PlanStep, wait: PlanWait, now: datetime) -> e.WaitBegan:
    until = wait.until or (now + wait.length if wait.length is not None else None)
    return e.WaitBegan(
        step=step.name, kind=wait.kind.value, digest=step.arguments_digest, signal=wait.signal, length=wait.length,
        until=until,
    )  # fmt: skip


def _children(state: s.RunState, step: s.PlanStep, wait: PlanWait) -> tuple[e.ChildStarted, ...]:
    """Those that were not started for the same work before, whatever became of them: by this plan or an earlier one."""
    known = {x.name: x for x in latest_children(state, step.name)}
    return tuple(
        _started(_next_id(state, step, x.name), step.name, x)
        for x in wait.children
        if x.name not in known or known[x.name].work != work_of(x.agent, x.goal, x.input)
    )


def _next_id(state: s.RunState, step: s.PlanStep, name: str) -> str:
    """From parent and step, in the step's round or the first one after it that no run of the name has."""
    made = (child_id(state.identity.run, step.name, name, n) for n in count(state.round_of(step)))
    return next(run for run in made if run not in state.children)


def _started(run: str, step: str, child: PlanChild) -> e.ChildStarted:
    return e.ChildStarted(
        run=run, step=step, name=child.name, agent=child.agent, agent_version=child.version, goal=child.goal,
        input=e.raw(child.input), budget=child.budget,
    )  # fmt: skip


def wait_over(state: s.RunState, now: datetime) -> Events:
    """What a waiting run does next; nothing while what it waits for has not come."""
    wait = state.wait
    if state.state is not s.State.WAITING or wait is None:
        return ()
    if came(state, wait, now):
        return _ended(state, wait)
    if wait.kind is WaitKind.SIGNAL and wait.until is not None and now >= wait.until:
        return human("signal_missing", subject=wait.signal, evidence=f"{wait.until:%Y-%m-%d %H:%M:%S} UTC")
    return ()


def _ended(state: s.RunState, wait: Wait) -> Events:
    if wait.kind is WaitKind.CHILDREN and (stopped := _stopped(state, wait.step)):
        said = "; ".join(f"{c.run} {c.ended}" for c in stopped)
        return human("child_stopped", subject=stopped[0].run, evidence=said)
    answer = next((x for x in state.signals if x.name == wait.signal and not x.taken_by), None)
    return (e.WaitEnded(step=wait.step, signal=answer.id if answer and wait.signal else ""),)


def _stopped(state: s.RunState, step: str) -> tuple[Child, ...]:
    """The step's children, of each name that the plan has the latest, that ended before their goal."""
    planned = next((x.wait for x in state.remaining if x.name == step), None)
    names = {x.name for x in planned.children} if planned else set()
    return tuple(c for c in latest_children(state, step) if c.name in names and c.ended != s.State.SUCCEEDED)


def start_again(state: s.RunState) -> Events:
    """The runs that ended before their goal, started anew in the next round of the step that waits for them."""
    step = state.remaining[0] if state.remaining else None
    if step is None or step.wait is None or state.undoing:
        return ()
    stopped = {c.name for c in _stopped(state, step.name)}
    again = tuple(
        _started(_next_id(state, step, x.name), step.name, x) for x in step.wait.children if x.name in stopped
    )
    return _too_dear(state, step.name, again) or again


def latest_children(state: s.RunState, step: str) -> tuple[Child, ...]:
    """The child runs of a step, of each name the one started last."""
    return tuple({c.name: c for c in state.children.values() if c.step == step}.values())


def signalled(state: s.RunState, *, id: str, name: str, payload: str) -> Events:
    """An answer from outside, whether or not it is waited for yet. Raises Refused where the run has ended."""
    if not allows(state.state, e.SignalReceived):
        raise Refused(state.state, "SignalReceived")
    return (e.SignalReceived(id=id, name=name, payload=e.raw(payload)),)


def child_moved(state: s.RunState, child: s.RunState) -> Events:
    """What a child's end, or its restart, is to its parent; nothing where the parent knows it or has ended."""
    known = next((c for c in state.children.values() if c.run == child.identity.run and c.open), None)
    if known is None or not allows(state.state, e.ChildEnded):
        return ()
    if child.state is s.State.RESTARTED:
        return (e.ChildReplaced(run=known.run, successor=child.successor),)
    if child.state not in s.TERMINAL:
        return ()
    return (
        e.ChildEnded(
            run=known.run, ended=child.state.value, spent=_spent(known, child), standing=standing(child),
            rounds=rounds_to_go_on(child), keys=keys_to_go_on(child),
        ),
    )  # fmt: skip


def _spent(known: Child, child: s.RunState) -> str:
    """What the child and those that it went on for spent: of a budget, all that is not left."""
    left = child.left(())
    return str(child.spent if known.budget is None or left is None else Decimal(known.budget) - left)
