"""Bytes that were stored and now belong to the run."""

from __future__ import annotations

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.decide.common import READS_IN_A_ROW, Events, human
from runs.machine.decide.plans import proposal_refused


def kept(state: s.RunState, event: e.ArtifactKept | None) -> Events:
    """Tie the bytes to the run, unless they are tied under the same name already. None: there are none to tie."""
    known = {(a.hash, a.name, a.kind, a.about) for a in state.artifacts.values()}
    if event is None or (event.artifact, event.name, event.kind, event.about) in known:
        return ()
    return (event,)


def kept_result(state: s.RunState, event: e.ArtifactKept) -> Events:
    """The planner keeps a result: not twice in a row under one name, and not for ever instead of a plan."""
    named = [a for a in state.artifacts.values() if (a.kind, a.name) == (event.kind, event.name)]
    if named and named[-1].hash == event.artifact:
        return proposal_refused(state, (f"the result {event.name} was kept and is the latest",))
    if state.reads < READS_IN_A_ROW:
        return (event,)
    evidence = f"it read or kept {state.reads} times and proposed no plan"
    return event, *human("planner_refused", evidence=evidence)
