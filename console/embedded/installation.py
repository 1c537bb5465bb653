"""What an installation consists of: the steps that bring it up, in their order."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from socket import socket

from console.embedded.home import DEMO_AGENTS, Home
from console.embedded.postgres import Postgres
from console.embedded.process import Child, Program
from console.embedded.steps import Once, Step, Together
from console.embedded.valkey import program as valkey_program
from console.ports import listen

MANAGE = str(Path(__file__).resolve().parents[2] / "manage.py")


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What to run, and where it can be reached."""

    home: Home
    web: socket
    sandbox_port: int | None
    concurrency: int

    @classmethod
    def plan(cls, home: Home, *, host: str, port: int, concurrency: int, demo: bool) -> Installation:
        """Choose ports: the wanted one or the next free one. The web's socket is open from here on."""
        sandbox_port = None
        if demo:
            with listen(port=8100) as free:
                sandbox_port = free.getsockname()[1]
        web = listen(host=host, port=port)
        return cls(home=home, web=web, sandbox_port=sandbox_port, concurrency=concurrency)

    @property
    def url(self) -> str:
        host, port = self.web.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def sandbox_url(self) -> str | None:
        return f"http://127.0.0.1:{self.sandbox_port}" if self.sandbox_port else None

    def facts(self) -> dict[str, str | None]:
        return {"url": self.url, "sandbox": self.sandbox_url}

    def environment(self, role: str = "command") -> dict[str, str]:
        """What a process of that role needs to know."""
        known = {"HANDOFF_HOME": str(self.home.root), "HANDOFF_ROLE": role, "HANDOFF_URL": self.url}
        if self.sandbox_url:
            known["HANDOFF_PROFILE"] = os.environ.get("HANDOFF_PROFILE", "demo")
            known["HANDOFF_AGENTS"] = os.environ.get("HANDOFF_AGENTS", DEMO_AGENTS)
            known["REFUNDS_SERVICE_URL"] = self.sandbox_url
        return known

    def steps(self) -> list[Step]:
        """Servers, tables, then what works on them."""
        worker = self._manage("worker", "--concurrency", str(self.concurrency))
        working = Together([worker, self._manage("beat"), self._pages()])
        return [
            Once(name="mark", done="", call=self._mark),
            *self.servers(),
            *self._sandbox(),
            working,
            *self._demo_setup(),
        ]

    def servers(self) -> list[Step]:
        """What the rest stands on: the servers nobody named an address for, and the tables."""
        programs, made = [], []
        if not os.environ.get("DATABASE_URL"):
            server = Postgres(self.home)
            programs.append(server.program())
            made.append(Once(name="database", call=server.make_database))
        if not os.environ.get("CELERY_BROKER_URL"):
            programs.append(valkey_program(self.home))
        return [*([Together(programs)] if programs else []), *made, self.once("prepare")]

    def _sandbox(self) -> list[Step]:
        if self.sandbox_port is None:
            return []
        port, kept = self.sandbox_port, str(self.home.sandbox)
        sandbox = Program(
            name="sandbox",
            argv=[sys.executable, "-m", "examples.sandbox", "--port", str(port), "--home", kept],
            environment=self.environment(),
            ready=lambda _child: answers("127.0.0.1", port, "/"),
            grace=3,
        )
        return [Together([sandbox])]

    def _demo_setup(self) -> list[Step]:
        """Last, so that the sign-ins it tells stand at the bottom of the terminal."""
        return [self.once("demo_setup")] if self.sandbox_port else []

    def _mark(self) -> None:
        """Where the demo begins the data, say so: `demo-reset` drops nothing else."""
        if self.sandbox_port and not self.home.postgres.exists():
            self.home.demo_mark.touch()

    def once(self, command: str) -> Once:
        """A management command, run to its end. What it writes, the person sees."""
        words = shlex.split(command)
        return Once(name=words[0], argv=[sys.executable, MANAGE, *words], environment=self.environment())

    def _manage(self, role: str, *arguments: str) -> Program:
        return Program(
            name=role,
            argv=[sys.executable, MANAGE, role, *arguments],
            environment=self.environment(role),
            ready=Child.announced,
            # A task that takes longer is cut off: the runtime is built for that.
            grace=8,
        )

    def _pages(self) -> Program:
        """The socket stays open in the supervisor, so nobody is refused while the process starts again."""
        host, port = self.web.getsockname()[:2]
        return Program(
            name="web",
            argv=[sys.executable, MANAGE, "web", "--fd", str(self.web.fileno())],
            environment=self.environment("web"),
            ready=lambda _child: answers(host, port, "/healthz"),
            grace=5,
            pass_fds=[self.web.fileno()],
        )


def answers(host: str, port: int, path: str) -> bool:
    """True where something answers there by HTTP, whatever it says."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    connection = HTTPConnection(reachable, port, timeout=1)
    try:
        connection.request("GET", path)
        connection.getresponse()
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    return True
