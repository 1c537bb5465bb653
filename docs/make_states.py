"""Write `docs/states.md` from the table of transitions: `python docs/make_states.py`. With `--check`, compare only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runs.machine.state import TERMINAL, State
from runs.machine.transitions import REASONS, TABLE, Move, states_of

PAGE = Path(__file__).with_name("states.md")
HEAD = """# The states of a run

Made by `python docs/make_states.py` from the one table in `runs/machine/transitions.py`. Do not edit it: a test fails
where the two differ.

A state and an event that the table does not join are refused, and nothing changes. Events that leave the state as it is
stand below the picture. `returns` leads back to where the run was before it stopped.
"""


def page() -> str:
    """The whole page."""
    return "\n".join((HEAD, *_picture(), "", *_stays(), "", *_decisions(), ""))


def _picture() -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    for state in TABLE:
        yield from _arrows(state)
    yield from (f"    {state} --> [*]" for state in State if state in TERMINAL)
    yield "```"


def _arrows(state: State | None) -> Iterator[str]:
    """One arrow for each state that can be reached from here, with all events that lead there."""
    leads: dict[str, list[str]] = {}
    for event, target in TABLE[state].items():
        if target is not state and target is not Move.SAME:
            for name in _targets(target):
                leads.setdefault(name, []).append(event.__name__)
    for target_name, events in leads.items():
        yield f"    {state or '[*]'} --> {target_name}: {', '.join(sorted(events))}"


def _targets(target: State | Move) -> tuple[str, ...]:
    return tuple(state.value for state in states_of(target)) or ("returns",)


def _stays() -> Iterator[str]:
    yield "| state | events that leave it as it is |"
    yield "| --- | --- |"
    for state in State:
        events = (e.__name__ for e, target in TABLE[state].items() if target in (Move.SAME, state))
        yield f"| `{state}` | {', '.join(sorted(events))} |"


def _decisions() -> Iterator[str]:
    yield "What a person may decide, by reason. With several reasons: only what all of them allow."
    yield ""
    yield "| reason | decisions |"
    yield "| --- | --- |"
    yield from (f"| `{code}` | {', '.join(decisions)} |" for code, decisions in REASONS.items())


def main() -> int:
    """Write the page, or compare it; the exit status."""
    if "--check" not in sys.argv:
        PAGE.write_text(page())
    fresh = PAGE.exists() and PAGE.read_text() == page()
    if not fresh:
        sys.stderr.write("docs/states.md is not what the table says; run: python docs/make_states.py\n")
    return 0 if fresh else 1


if __name__ == "__main__":
    sys.exit(main())
