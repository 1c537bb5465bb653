"""The predicates of a run's constraints, held against what its planner proposes and what is bound late.

A predicate must be true of every step that would be sent. One that has no value for a step, or that this code cannot
read any more, is not kept: what cannot be told is never taken for true. A plan that undoes is made by code, and
compensation exists for just the cases where constraints changed: it is not held against them.
"""

from __future__ import annotations

from collections.abc import Iterator

from approvals.expressions import Expression, ExpressionFailed, ExpressionRefused, compiled
from approvals.seen import Seen
from runs import judging
from runs.machine import state as s
from runs.machine.canonical import plain
from runs.machine.events import Broken


def broken(state: s.RunState, plan: s.PlanDocument) -> tuple[Broken, ...]:
    """The constraints that a plan does not keep, each with the first step that breaks it."""
    held = [
        (c, _readable(c.term.predicate)) for c in state.constraints if c.term.predicate and not c.withdrawn
    ]
    if not held or plan.undo:
        return ()
    names = frozenset[str]().union(*(x.names for _, x in held if isinstance(x, Expression)))
    steps = judging.judged(plan)
    seen = Seen(judging.judged_steps(plan, judging.about(state, names)), names)
    return tuple(found for c, x in held for found in _breaks(state, c, x, steps, seen))


def _readable(predicate: str) -> Expression | ExpressionRefused:
    try:
        return compiled(predicate)
    except ExpressionRefused as error:
        return error


def _breaks(
    state: s.RunState,
    constraint: s.Constraint,
    found: Expression | ExpressionRefused,
    steps: list[s.PlanStep],
    seen: Seen,
) -> Iterator[Broken]:
    if isinstance(found, ExpressionRefused):
        yield _broken(constraint, "", str(found))
        return
    for step, said in zip(steps, seen.each(found), strict=True):
        if said is not True and not _sends_nothing(state, step):
            yield _broken(constraint, step.name, str(said) if isinstance(said, ExpressionFailed) else "")
            return


def _sends_nothing(state: s.RunState, step: s.PlanStep) -> bool:
    """What stands is answered from its receipt, whatever a constraint says of doing it now."""
    return step.wait is None and state.stands(step)


def _broken(constraint: s.Constraint, step: str, why: str) -> Broken:
    term = constraint.term
    return Broken(constraint=constraint.number, name=term.name, text=term.text, step=step, why=plain(why))


def sentence(found: Broken) -> str:
    """What the planner is told, the constraint first."""
    named = f"C-{found.constraint}" + (f" “{found.name}”" if found.name else "")
    where = f" in step {found.step}" if found.step else ""
    if found.why:
        return plain(f"{named} cannot be told to be kept{where}, so it is not: {found.why} ({found.text})")
    return plain(f"{named} is not kept{where}: {found.text}")
