"""What the sources of constraints state by now and a run has not accepted: shown, and no limit of the run."""

from __future__ import annotations

from typing import Any

from runs import sources
from runs.machine import state as s
from runs.models import Run
from runs.pages import undo, words

Row = dict[str, Any]


def rows(run: Run, state: s.RunState) -> list[Row]:
    """The `stated_since` of parts/constraints.html. Nothing of a run that is over."""
    if state.state in s.TERMINAL:
        return []
    return [
        {
            "name": term.name,
            "text": term.text,
            "predicate": term.predicate,
            "kind": str(words.SOURCES.get(term.source_kind, term.source_kind)),
            "by": f"{term.source_ref} {term.source_version}",
        }
        for term in sources.stated_since(undo.code_of(run), state)
    ]
