"""Bytes that were stored and now belong to the run."""

from __future__ import annotations

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.decide.common import Events


def kept(state: s.RunState, event: e.ArtifactKept | None) -> Events:
    """Tie the bytes to the run, unless they are tied under the same name already. None: there are none to tie."""
    known = {(a.hash, a.name, a.kind, a.about) for a in state.artifacts.values()}
    if event is None or (event.artifact, event.name, event.kind, event.about) in known:
        return ()
    return (event,)
