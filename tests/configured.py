"""A configuration outside: a real HTTP server that holds one document, with its ETag, and misbehaves as told."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


@dataclass
class Configured:
    """What the server holds and does, and what it was asked."""

    url: str = ""
    body: bytes = b""
    status: int = 200
    etag: bool = True
    drips: float = 0.0  #: seconds between two bytes of the body
    moved: str = ""
    asked: list[str] = field(default_factory=list)  #: the If-None-Match of each request
    answered: list[int] = field(default_factory=list)

    def state(self, *constraints: dict[str, str]) -> None:
        """Hold these constraints from here on."""
        self.body = json.dumps({"constraints": constraints}).encode()

    @property
    def tag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:12]}"'


@contextmanager
def configured() -> Iterator[Configured]:
    """The server on a free port, until the block ends."""
    found = Configured()

    class Handler(_Handler):
        holds: ClassVar[Configured] = found

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}/constraints.json"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    holds: ClassVar[Configured]

    def do_GET(self) -> None:
        """The document; 304 where the asker has it already."""
        holds, sent = self.holds, self.headers.get("If-None-Match", "")
        holds.asked.append(sent)
        status = 304 if holds.status == 200 and holds.etag and sent == holds.tag else holds.status
        holds.answered.append(status)
        body = holds.body if status == 200 else b""
        self.send_response(status)
        if holds.etag:
            self.send_header("ETag", holds.tag)
        if holds.moved:
            self.send_header("Location", holds.moved)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self._write(body)

    def _write(self, body: bytes) -> None:
        try:
            for start in range(0, len(body), 1 if self.holds.drips else len(body) or 1):
                self.wfile.write(body[start : start + 1] if self.holds.drips else body)
                time.sleep(self.holds.drips)
        except OSError:
            pass  # whoever asked has had enough

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""
