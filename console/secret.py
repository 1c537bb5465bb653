"""The key that signs sessions and forms."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from console.env import BadEnvironment, text


def secret_key(*, file: Path, made_for_you: bool) -> str:
    """`$HANDOFF_SECRET_KEY`; else, where `made_for_you`, the key in `file`, made once, for its owner only.

    Raises `BadEnvironment` where the key has to be given: machines that share a database must share the key.
    """
    if given := text("HANDOFF_SECRET_KEY"):
        return given
    if not made_for_you:
        raise BadEnvironment(
            "HANDOFF_SECRET_KEY is not set, and DATABASE_URL is: set it to at least 50 random characters"
        )
    if not file.exists():
        _make(file)
    return file.read_text().strip()


def _make(file: Path) -> None:
    """Write the key whole or not at all: processes that start together all read the first one's."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(secrets.token_urlsafe(64))
    try:
        os.link(draft, file)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
