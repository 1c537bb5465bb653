"""Moving a run to another version of its agent: when it may be, and what of its plan does not survive that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.decide.common import Events, human
from runs.machine.decide.revalidation import other_code
from runs.machine.revalidate import POLICY, changed_parts
from runs.machine.transitions import Refused, allows


def cannot_move(state: s.RunState) -> str:
    """Why no other version can take the run now, as a code; empty where one can.

    `over`, `open_effects` (it belongs to the code that sent it until it is settled), `children` (runs that it started
    go on), `cancel` (ending needs no code), `working` (a worker moves it: it is not waiting for anybody).
    """
    if state.state in s.TERMINAL:
        return "over"
    if state.open_effects:
        return "open_effects"
    if state.open_children:
        return "children"
    if state.cancel_requested and not (state.undoing and state.state is s.State.NEEDS_HUMAN):
        return "cancel"
    return "" if allows(state.state, e.VersionMoved) else "working"


def moved(state: s.RunState, *, to: str, code: Mapping[str, str], note: str) -> Events:
    """A person lets version `to` go on with the run. Raises Refused where `cannot_move`.

    Whether that version can take it over is not asked here: that takes its tools.
    """
    if cannot_move(state):
        raise Refused(state.state, "VersionMoved")
    was = state.identity.agent_version
    return (e.VersionMoved(was=was, now=to, code=dict(code), note=note, voids=ended_by(state, code)),)


def ended_by(state: s.RunState, code: Mapping[str, str]) -> tuple[e.Cause, ...]:
    """What a move to this code changes of that which the plan in force rests on: it ends with it.

    What was never recorded counts as changed.
    """
    return tuple(_ended(state, code))


def _ended(state: s.RunState, code: Mapping[str, str]) -> Iterator[e.Cause]:
    if state.plan is None or state.plan.voided_seq is not None:
        return
    plan, was = state.plan.plan, state.identity.code
    rests = [rest.tool for step in plan.steps for rest in step.rests_on]
    for tool in sorted({*(step.tool for step in plan.steps), *rests}):
        part = f"tool:{tool}"
        if was.get(part, "") != code.get(part, ""):
            yield e.Cause(what="code", subject=part, was=was.get(part, ""), now=code.get(part, ""))
    if plan.policy_version != code.get(POLICY, ""):
        yield e.Cause(what="code", subject=POLICY, was=plan.policy_version, now=code.get(POLICY, ""))


def other_parts(state: s.RunState, parts: Mapping[str, str]) -> Events:
    """A run that plans is held by code that is not what it is bound to: a person. Nothing where it is."""
    lost = tuple(check for check in changed_parts(state.identity, parts) if not check.passed)
    return human("version_unavailable", subject=lost[0].subject, evidence=other_code(lost)) if lost else ()
