"""Sockets: one thread per connection, on the loopback interface only."""

from __future__ import annotations

import select
import socket
import socketserver
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from examples.sandbox.faults import ConnectionDropped
from examples.sandbox.records import ACCOUNT
from examples.sandbox.routes import Router
from examples.sandbox.wire import Answer, Refusal, Request, answered

HOST = "127.0.0.1"
LARGEST_BODY = 64 * 1024
POLICY = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"


class Server(ThreadingHTTPServer):
    """The service on a port; 0 lets the system choose one."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, router: Router) -> None:
        """Bind. Raises OSError where the port is taken."""
        self.router = router
        super().__init__((HOST, port), Handler)

    def server_bind(self) -> None:
        """Bind without asking the name service what this machine is called."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of ours; anything else is shown."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.server_port}"


class Connection:
    """The client's end of a socket."""

    def __init__(self, sock: socket.socket) -> None:
        """Watch a connected socket."""
        self._socket = sock

    def left(self) -> bool:
        """Whether the client has closed it. What it may have sent meanwhile is left unread."""
        readable, _, _ = select.select([self._socket], [], [], 0)
        if not readable:
            return False
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "sandbox"
    sys_version = ""
    timeout = 120
    server: Server

    def do_GET(self) -> None:
        """Read."""
        self._serve()

    def do_POST(self) -> None:
        """Execute."""
        self._serve()

    def do_PUT(self) -> None:
        """Load."""
        self._serve()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: what was executed is in the journal."""

    def _serve(self) -> None:
        try:
            self._send(self._answer())
        except (ConnectionDropped, ConnectionError):
            self.close_connection = True

    def _answer(self) -> Answer:
        refusal = self._unreadable()
        if refusal is not None:
            self.close_connection = True
            return answered(lambda: _raise(refusal))
        request = Request(
            method=self.command,
            target=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(int(self.headers.get("Content-Length", "0"))),
        )
        return self.server.router.serve(request, Connection(self.connection))

    def _unreadable(self) -> Refusal | None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            return Refusal(HTTPStatus.LENGTH_REQUIRED, "length_missing", "Send the body with its length.")
        if int(length) > LARGEST_BODY:
            return Refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_large", f"At most {LARGEST_BODY} bytes."
            )
        return None

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Account", ACCOUNT)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)


def _raise(refusal: Refusal) -> Answer:
    raise refusal
