"""As whom PostgreSQL runs: it refuses root, and a user that has no name."""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

AS_NOBODY = ("unshare", "--user", "--map-user=65534", "--map-group=65534")


@dataclass(frozen=True, slots=True)
class Runner:
    """What stands before a program, or the user and group it is given to."""

    prefix: tuple[str, ...] = ()
    user: int | None = None
    group: int | None = None


def _named() -> bool:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return True


@functools.cache
def runner() -> Runner:
    """Nothing special for an ordinary user; for root a user namespace, and where those are forbidden, `nobody`.

    In the namespace the files stay root's, and no folder has to be opened to others.
    """
    if os.geteuid() != 0 and _named():
        return Runner()
    if shutil.which("unshare") and subprocess.run([*AS_NOBODY, "true"], capture_output=True).returncode == 0:
        return Runner(prefix=AS_NOBODY)
    if os.geteuid() != 0:
        return Runner()
    nobody = pwd.getpwnam("nobody")
    return Runner(user=nobody.pw_uid, group=nobody.pw_gid)


def closed_to(user: int, path: Path) -> Path | None:
    """The first folder on the way to `path` that this user may not pass, or None where the way is open."""
    for folder in [*reversed(path.parents), path]:
        found = folder.stat()
        needed = stat.S_IXUSR if found.st_uid == user else stat.S_IXOTH
        if not found.st_mode & needed:
            return folder
    return None


def give(folder: Path, *, user: int, group: int) -> None:
    """Make a folder and all in it this user's."""
    for entry in [folder, *folder.rglob("*")]:
        if entry.lstat().st_uid != user:
            os.chown(entry, user, group, follow_symlinks=False)
