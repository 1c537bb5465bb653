"""The published schemas are those of the types, and documents of every kind of life are as they say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runs.machine import checkpoint, checkpointing, handoff_document
from runs.machine import state as s
from runs.machine.evolve import reduce
from tests.checkpoint.schema import problems, unnamed
from tests.machine.lives import LIVES, T0

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "static" / "schemas"


def test_they_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "make_schemas.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", LIVES)
def test_documents_of_every_event_of_every_life_are_as_they_say(name: s.State) -> None:
    log = LIVES[name]().log
    for seq in range(1, len(log) + 1):
        state = reduce(log[:seq])
        written = checkpointing.document(state, head="ab", schema=1, evidence={}, started={})
        kept = json.loads(checkpoint.text_of(written))
        shown = json.loads(
            msgspec.json.encode(handoff_document.document(state, T0, rights=("operate_runs",)))
        )
        for document, file in ((kept, "checkpoint-1.json"), (shown, "handoff-1.json")):
            schema: dict[str, Any] = json.loads((FOLDER / file).read_text())
            assert list(problems(document, schema, schema)) == []
            assert list(unnamed(document, schema, schema)) == []


def test_the_schema_refuses_what_is_not_a_handoff() -> None:
    schema = json.loads((FOLDER / "handoff-1.json").read_text())
    state = reduce(LIVES[s.State.UNKNOWN]().log)
    document = json.loads(msgspec.json.encode(handoff_document.document(state, T0)))
    document["next"]["not_safe"] = "all"
    del document["asked"]["original"]
    assert len(list(problems(document, schema, schema))) == 2
