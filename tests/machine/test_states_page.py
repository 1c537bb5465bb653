"""The picture of the states is the table's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from runs.machine.state import State

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_fresh() -> None:
    checked = subprocess.run(
        [sys.executable, DOCS / "make_states.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_page_shows_every_state() -> None:
    page = (DOCS / "states.md").read_text()
    assert [state for state in State if f"`{state}`" not in page or f" {state} " not in page] == []
