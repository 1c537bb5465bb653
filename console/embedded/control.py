"""Asking a running supervisor to stop, start or kill one of its processes: one JSON line each way."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

from console.embedded.home import Home

Request = dict[str, Any]
Answer = dict[str, Any]


class NotRunning(Exception):
    """No supervisor runs in this home: start one with `make demo` or `manage.py up`."""


class Refused(Exception):
    """The supervisor did not do what it was asked; the message says why."""


def ask(home: Home, action: str, *, timeout: float = 120.0, **details: Any) -> Answer:
    """Send one request and wait until it is done. Raises `NotRunning` or `Refused`."""
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(timeout)
            link.connect(str(home.control_socket))
            link.sendall(json.dumps({"action": action, **details}).encode() + b"\n")
            answer: Answer = json.loads(link.makefile().readline() or "{}")
    except (FileNotFoundError, ConnectionRefusedError):
        raise NotRunning(
            f"No supervisor runs in {home.root}; start one with make demo or manage.py up"
        ) from None
    except TimeoutError:
        raise Refused(f"The supervisor gave no answer in {timeout:.0f} s; it is busy or stopping") from None
    except ConnectionError:
        answer = {}
    if not answer.get("ok"):
        raise Refused(answer.get("why") or "The supervisor stopped before it answered")
    return answer


class ControlSocket:
    """The supervisor's end. Requests are answered one after the other."""

    def __init__(self, home: Home, answer: Callable[[Request], Answer]) -> None:
        self.answer = answer
        self.path = home.control_socket
        # The home's lock is held, so a socket that is here belongs to a supervisor that was killed.
        self.path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(self.path))
        self.path.chmod(0o600)
        self.socket.listen(8)

    def serve_for(self, seconds: float) -> None:
        """Wait at most so long for one request and answer it."""
        self.socket.settimeout(seconds)
        try:
            link, _address = self.socket.accept()
        except TimeoutError:
            return
        with link:
            link.settimeout(2)
            try:
                request = json.loads(link.makefile().readline() or "null")
                link.sendall(json.dumps(self._answered(request)).encode() + b"\n")
            except (OSError, ValueError):
                # A client that left or sent no JSON gets no answer; it must not end the supervisor.
                return

    def _answered(self, request: object) -> Answer:
        if not isinstance(request, dict):
            return {"ok": False, "why": "A request is a JSON object"}
        try:
            return {"ok": True, **self.answer(request)}
        except Refused as refused:
            return {"ok": False, "why": str(refused)}

    def close(self) -> None:
        self.socket.close()
        self.path.unlink(missing_ok=True)
