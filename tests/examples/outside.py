"""The sandbox: as a real process that a test may stop, kill and start again, or in a thread."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from examples.sandbox.faults import Holds
from examples.sandbox.journal import Journal
from examples.sandbox.routes import Router
from examples.sandbox.server import Server
from examples.sandbox.world import World

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 10.0  # seconds until a test gives up waiting


class Outside:
    """One sandbox. Start it with `with`, or by `start()` and `stop()`."""

    def __init__(self, home: Path) -> None:
        """Choose the folder; nothing runs yet."""
        self.home = home
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        """Start on a free port and wait until it listens. Raises AssertionError with what it said."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "examples.sandbox", "--port", "0", "--home", str(self.home)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said.startswith("listening on http://127.0.0.1:"):
            self._end(subprocess.Popen.kill)
            raise AssertionError(said)
        self.url = said.removeprefix("listening on ").strip()
        return self

    def kill(self) -> None:
        """SIGKILL."""
        self._end(subprocess.Popen.kill)

    def stop(self) -> int:
        """SIGTERM. Returns the exit code."""
        return self._end(subprocess.Popen.terminate)

    def set(self, **switches: object) -> None:
        """Move switches."""
        self._ask("POST", "/control/switches", body=switches)

    def load(self, order: str, amount: str = "120.00", **fields: str) -> dict[str, Any]:
        """Load an order."""
        body = {
            "supplier": "Nord GmbH",
            "email": "pay@nord.example",
            "amount": amount,
            "currency": "EUR",
            "ticket": f"T-{order}",
            **fields,
        }
        answer: dict[str, Any] = self._ask("PUT", f"/orders/{order}", body=body)
        return answer

    def ledger(self) -> dict[str, Any]:
        """What was really executed."""
        answer: dict[str, Any] = self._ask("GET", "/control/ledger")
        return answer

    def held(self) -> list[dict[str, Any]]:
        """The requests that wait."""
        answer: list[dict[str, Any]] = self._ask("GET", "/control/held")
        return answer

    def client(self, *, timeout: float = PATIENCE) -> httpx.Client:
        """A client of it that ignores proxies of the machine."""
        # No certificates are needed here, and reading them takes longer than most of these tests.
        return httpx.Client(base_url=self.url, timeout=timeout, trust_env=False, verify=False)

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, unless it is stopped."""
        if self._process is not None:
            self.kill()

    def _ask(self, method: str, path: str, *, body: object = None) -> Any:
        with self.client() as client:
            return client.request(method, path, json=body).raise_for_status().json()

    def _end(self, signal: Callable[[subprocess.Popen[str]], None]) -> int:
        assert self._process is not None
        process, self._process = self._process, None
        signal(process)
        code = process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()
        return code


class OutsideInThread(Outside):
    """The same service on a real socket and a real journal, for tests that kill nothing: it starts at once."""

    def start(self) -> Self:
        """Serve on a free port."""
        self._journal = Journal(self.home / "journal.jsonl")
        self._server = Server(0, Router(World(self._journal), Holds()))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = self._server.url
        return self

    def stop(self) -> int:
        """Close the port; connections that are open end with their clients."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._journal.close()
        return 0

    def kill(self) -> None:
        """A thread cannot be killed."""
        raise NotImplementedError("start an Outside, which is a process")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()


def until[T](look: Callable[[], T], *, within: float = PATIENCE) -> T:
    """Ask again until the answer is true, and return it. Raises AssertionError when time is up."""
    end = time.monotonic() + within
    while not (found := look()):
        assert time.monotonic() < end, f"still {found!r} after {within} seconds"
        time.sleep(0.02)
    return found
