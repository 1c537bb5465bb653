"""What `make` needs before there is anything: it finds a Python by running it, or says what would help."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Only what the bootstrap reads, with a lock that asks for nothing."""
    made = tmp_path / "checkout"
    (made / "bin").mkdir(parents=True)
    (made / "requirements").mkdir()
    (made / "bin" / "bootstrap").write_bytes((ROOT / "bin" / "bootstrap").read_bytes())
    (made / "requirements" / "base.txt").write_text("# nothing==0\n")
    return made


def bootstrap(
    checkout: Path, *, path: str = "/usr/bin:/bin", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run it with no HOME, no pyenv, no uv, and a PATH on which only an old Python may be."""
    return subprocess.run(
        ["sh", str(checkout / "bin" / "bootstrap"), "base"],
        env={"PATH": path, "PYENV_ROOT": "/nonexistent", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def shim(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A PATH with the tools the script uses and a Python that is too old under every name."""
    folder = tmp_path / "bare"
    for tool in (
        "sh",
        "cat",
        "cksum",
        "dirname",
        "basename",
        "grep",
        "ls",
        "mkdir",
        "rm",
        "sed",
        "sort",
        "tr",
        "env",
    ):
        found = next(p for p in (Path("/usr/bin") / tool, Path("/bin") / tool) if p.exists())
        folder.mkdir(exist_ok=True)
        (folder / tool).symlink_to(found)
    for name in ("python3.12", "python3", "python"):
        shim(folder, name, "exit 1")
    return str(folder)


def test_with_only_an_old_python_it_stops_at_once_and_names_the_ways(checkout: Path, bare: str) -> None:
    began = time.monotonic()
    done = bootstrap(checkout, path=bare)
    assert done.returncode == 1
    assert time.monotonic() - began < 15
    for way in ("apt-get install python3.12", "pyenv install", "uv", "PYTHON=/path/to/python3.12"):
        assert way in done.stderr


def test_a_python_that_was_named_but_is_too_old_is_refused(checkout: Path, bare: str) -> None:
    done = bootstrap(checkout, path=bare, PYTHON="python3")
    assert "error: PYTHON=python3 is not Python 3.12 or newer" in done.stderr


def test_a_failing_shim_is_passed_over_and_pyenv_is_found_by_it(
    checkout: Path, bare: str, tmp_path: Path
) -> None:
    """As under pyenv, where python3.12 is on PATH and fails, and the real one lies in versions/."""
    shims = tmp_path / "pyenv" / "shims"
    real = tmp_path / "pyenv" / "versions" / "3.13.9" / "bin"
    shims.mkdir(parents=True)
    real.mkdir(parents=True)
    shim(shims, "python3.12", "echo 'pyenv: python3.12: command not found' >&2; exit 127")
    shim(real, "python3", f'exec "{sys.executable}" "$@"')
    done = bootstrap(checkout, path=f"{shims}:{bare}")
    assert done.returncode == 0, done.stderr
    assert "Making .venv with Python 3." in done.stdout


def test_it_does_only_what_is_needed(checkout: Path, bare: str, tmp_path: Path) -> None:
    """What stands is left, a changed lock is installed, what was moved is made anew.

    With a uv that makes a venv and installs nothing, since pip would take its time.
    """
    venv = f'[ "$1" != venv ] || "{sys.executable}" -m venv --without-pip .venv'
    shim(tmp_path / "tools", "uv", venv)
    with_uv = {"UV": str(tmp_path / "tools" / "uv"), "PYTHON": sys.executable}
    assert bootstrap(checkout, path=bare, **with_uv).returncode == 0
    assert bootstrap(checkout, path=bare, **with_uv).stdout == ""
    (checkout / "requirements" / "base.txt").write_text("# nothing==1\n")
    changed = bootstrap(checkout, path=bare, **with_uv)
    assert "Installing" in changed.stdout
    assert "Making" not in changed.stdout
    moved = tmp_path / "moved"
    checkout.rename(moved)
    assert "Making .venv" in bootstrap(moved, path=bare, **with_uv).stdout


def test_the_locks_are_fresh_and_hold_no_address() -> None:
    done = subprocess.run(
        [sys.executable, "bin/lock.py", "--check"],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    for lock in (ROOT / "requirements").glob("*.txt"):
        assert "://" not in lock.read_text()
