"""Write the published JSON Schemas from their types: `python docs/make_schemas.py`. With `--check`, compare only."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec

from runs.machine import checkpoint, handoff_document

FOLDER = Path(__file__).resolve().parents[1] / "static" / "schemas"
#: File -> (type, what it is of). The number is that of the format, and grows when a field changes its meaning or goes.
SCHEMAS: dict[str, tuple[Any, str]] = {
    "handoff-1.json": (handoff_document.Handoff, f"The handoff of a run, format {handoff_document.FORMAT}"),
    "checkpoint-1.json": (checkpoint.Checkpoint, f"The checkpoint of a run, format {checkpoint.FORMAT}"),
}


def schema(name: str) -> str:
    """The text of one file."""
    type_, title = SCHEMAS[name]
    heading = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return json.dumps({**heading, **msgspec.json.schema(type_)}, indent=1, sort_keys=True) + "\n"


def main() -> int:
    """Write the files, or compare them; the exit status."""
    stale = []
    for name in SCHEMAS:
        file, text = FOLDER / name, schema(name)
        if "--check" not in sys.argv:
            FOLDER.mkdir(exist_ok=True)
            file.write_text(text)
        if not file.exists() or file.read_text() != text:
            stale.append(name)
    for name in stale:
        sys.stderr.write(
            f"static/schemas/{name} is not what the types say; run: python docs/make_schemas.py\n"
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
