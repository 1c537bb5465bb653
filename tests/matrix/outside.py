"""An outside world over HTTP, in a thread of the test, with state: what it executed, and how it treats each operation.

`fate` of an operation decides about its first call only: `done` executes and drops the answer, `not_done` drops the
request, `late` executes it some time after the caller has gone, "" answers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LATE_SECONDS = 2.5


@dataclass
class Outside:
    """What is outside; every method may be called from many threads."""

    fates: dict[str, str] = field(default_factory=dict)
    executed: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def fate_of(self, operation: str) -> str:
        """How the first call of this operation ends; the later ones are answered."""
        with self.lock:
            self.calls.append(operation)
            return self.fates.pop(operation, "")

    def execute(self, call: dict[str, Any]) -> None:
        """Do it, unless a key says that it was done."""
        with self.lock:
            known = call["key"] and any(x["key"] == call["key"] for x in self.executed)
            if not known:
                self.executed.append(call)

    def found(self, operation: str) -> list[dict[str, Any]]:
        """Everything that was executed under an operation id."""
        with self.lock:
            return [x for x in self.executed if x["operation"] == operation]


class Handler(BaseHTTPRequestHandler):
    """POST / does, GET /?operation= tells."""

    outside: Outside

    def do_POST(self) -> None:
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fate = self.outside.fate_of(call["operation"])
        if fate == "late":
            threading.Timer(LATE_SECONDS, self.outside.execute, [call]).start()
        elif fate != "not_done":
            self.outside.execute(call)
        if fate:
            self.close_connection = True
            return
        self._answer({"reference": f"ref-{call['operation']}"})

    def do_GET(self) -> None:
        operation = parse_qs(urlsplit(self.path).query)["operation"][0]
        self._answer(self.outside.found(operation))

    def _answer(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the test looks at the state."""


@contextmanager
def serving() -> Iterator[Outside]:
    """The outside on a free port, until the block ends."""
    outside = Outside()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"outside": outside}))
    outside.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield outside
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
