"""Make the lock files, or check that they are fresh: versions and hashes, and no address of any index.

The first line of each carries a digest of what it was made from, so the check needs neither uv nor a network.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS: dict[str, list[str]] = {"base": [], "dev": ["--group", "dev"]}
COMMAND = [
    *("uv", "pip", "compile", "pyproject.toml", "--universal", "--python-version", "3.12"),
    *(
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--no-emit-index-url",
        "--no-emit-find-links",
        "--quiet",
    ),
]
PIN = re.compile(r"^[a-z0-9][a-z0-9._-]*(\[[a-z0-9,_-]+\])?==\S+( ; .+)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


def digest(name: str) -> str:
    """What the lock `name` depends on in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [project["project"]["dependencies"], project["project"]["requires-python"]]
    if name == "dev":
        wanted.append(project["dependency-groups"]["dev"])
    return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()


def header(name: str) -> str:
    return f"# Made by `make lock` from pyproject.toml, sha256:{digest(name)}"


def make(name: str) -> None:
    """Resolve anew, keeping the versions that still fit."""
    target = ROOT / "requirements" / f"{name}.txt"
    subprocess.run([*COMMAND, *LOCKS[name], "--output-file", str(target)], cwd=ROOT, check=True)
    lines = [line for line in target.read_text().splitlines() if not line.startswith("#")]
    target.write_text("\n".join([header(name), *lines]) + "\n")


def faults(name: str) -> list[str]:
    """What is wrong with a lock, as sentences."""
    target = ROOT / "requirements" / f"{name}.txt"
    first, *lines = target.read_text().splitlines() if target.exists() else [""]
    stale = f"{target.name} is not made from this pyproject.toml: run make lock"
    found = [] if first == header(name) else [stale]
    odd = [line for line in lines if not PIN.match(line) and not HASH.match(line)]
    return found + [f"{target.name}: neither a pinned version nor a hash: {line}" for line in odd]


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        found = [fault for name in LOCKS for fault in faults(name)]
        sys.stderr.writelines(f"{fault}\n" for fault in found)
        return 1 if found else 0
    for name in LOCKS:
        make(name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
