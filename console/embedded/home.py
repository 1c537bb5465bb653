"""Where an embedded installation keeps its things. Nothing here starts or makes anything but folders."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# A socket's path may have 107 bytes, and PostgreSQL puts `.s.PGSQL.5432.lock` into the folder.
LONGEST_SOCKET_FOLDER = 80
DEMO_AGENTS = (
    "examples.refunds.agent:REFUNDS,examples.lives.agent:LIVES,examples.lives.agent:RULED,"
    "examples.lives.agent:SCOPED"
)


class NotOurFolder(Exception):
    """A folder that has to be private belongs to someone else, or others may enter it: remove or move it."""


@dataclass(frozen=True, slots=True)
class Home:
    """The folder `.handoff` (or `$HANDOFF_HOME`) and what stands in it."""

    root: Path

    @classmethod
    def default(cls) -> Home:
        """`$HANDOFF_HOME`, else `.handoff` beside manage.py."""
        beside = Path(__file__).resolve().parents[2] / ".handoff"
        return cls(Path(os.environ.get("HANDOFF_HOME") or beside).absolute())

    @property
    def run(self) -> Path:
        """Records of running processes, the lock, ready files."""
        return self.root / "run"

    @property
    def log(self) -> Path:
        """One log file per process."""
        return self.root / "log"

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def valkey(self) -> Path:
        return self.root / "valkey"

    @property
    def static(self) -> Path:
        return self.root / "static"

    @property
    def sandbox(self) -> Path:
        """Where the demo's outside world keeps its things."""
        return self.root / "sandbox"

    @property
    def artifacts(self) -> Path:
        """The bytes of artifacts and summaries."""
        return self.root / "artifacts"

    @property
    def sign_ins(self) -> Path:
        """The demo people's passwords, for their owner only."""
        return self.root / "sign-ins.txt"

    @property
    def demo_mark(self) -> Path:
        """Stands where the data was begun by the demo, and so may be dropped."""
        return self.root / "demo"

    @property
    def agents(self) -> str:
        """The agents of the data that is kept here: the demo's, so that its commands are found in a second terminal."""
        return DEMO_AGENTS if self.demo_mark.exists() else ""

    @property
    def secret_key(self) -> Path:
        return self.root / "secret-key"

    @property
    def sockets(self) -> Path:
        """The folder of the private sockets; a short one in /tmp where the path is too long for a socket."""
        inside = self.run / "s"
        if len(os.fsencode(inside)) <= LONGEST_SOCKET_FOLDER:
            return inside
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"hoff-{digest}"

    @property
    def valkey_socket(self) -> Path:
        return self.sockets / "valkey.sock"

    @property
    def control_socket(self) -> Path:
        return self.sockets / "control.sock"

    @property
    def database_url(self) -> str:
        """The address of the embedded database, which only answers while a supervisor runs it."""
        return f"postgresql://app@/app?host={self.sockets}"

    @property
    def broker_url(self) -> str:
        return f"redis+socket://{self.valkey_socket}?virtual_host=0"

    def forget(self) -> None:
        """Remove everything but records and logs. The caller holds the home's lock and nothing runs in it."""
        for entry in self.root.iterdir():
            if entry in {self.run, self.log}:
                continue
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def leave(self) -> None:
        """Remove a socket folder that stands outside the home, once nothing is in it any more."""
        if self.root not in self.sockets.parents:
            with suppress(OSError):
                self.sockets.rmdir()

    def make(self) -> None:
        """Make the folders, private to this user. Raises `NotOurFolder` where one is another's."""
        for folder in (self.root, self.run, self.log, self.sockets):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        owned = self.sockets.stat()
        # Root may have given it to the user that runs PostgreSQL.
        if os.geteuid() not in {0, owned.st_uid} or self.sockets.is_symlink():
            raise NotOurFolder(
                f"{self.sockets} belongs to another user; remove it, or set HANDOFF_HOME to a shorter path"
            )
        self.sockets.chmod(0o700)
