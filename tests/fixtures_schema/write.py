"""Writes `v1.jsonl`, once for each schema version that is released: `python -m tests.fixtures_schema.write v1`.

Lives of runs that end in every state, then one event of every type, each line an event as it is stored. What is
released is never written again: a file that exists is left alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runs.machine import events as e
from runs.machine.evolve import evolve
from tests.machine.lives import LIVES, T0, WORKER
from tests.machine.samples import SAMPLES

FOLDER = Path(__file__).parent


def lines() -> Iterator[dict[str, Any]]:
    """Every line: `log` names the life it belongs to, or `samples` for events that make no log together."""
    for name, life in LIVES.items():
        state = None
        for recorded in life().log:
            state = evolve(state, recorded)
            yield _line(name.value, recorded, state.state.value)
    for number, event in enumerate(SAMPLES.values(), 1):
        yield _line("samples", e.Recorded(number, T0, WORKER, event), "")


def _line(log: str, recorded: e.Recorded, state: str) -> dict[str, Any]:
    kind = type(recorded.event)
    return {
        "log": log, "seq": recorded.seq, "type": kind.__name__, "version": e.VERSIONS[kind],
        "at": recorded.at.isoformat(), "actor": [recorded.actor.kind.value, recorded.actor.id, recorded.actor.name],
        "state_after": state, "body": e.encode(recorded.event),
    }  # fmt: skip


def write(version: str) -> Path:
    """Write the fixture of a schema version. Raises FileExistsError for one that was released."""
    target = FOLDER / f"{version}.jsonl"
    with target.open("x", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines())
    return target


if __name__ == "__main__":
    sys.stdout.write(f"{write(sys.argv[1])}\n")
