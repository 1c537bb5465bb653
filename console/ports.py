"""A listening socket on the wanted port, or on the next free one."""

from __future__ import annotations

import errno
import socket

TRIED = 100


class NoFreePort(Exception):
    """All ports that were tried are taken: ask for another with --port."""


def listen(*, host: str = "127.0.0.1", port: int = 8000) -> socket.socket:
    """A socket that listens. Port 0 takes any. Raises `NoFreePort` where this port and the next are taken."""
    for candidate in range(port, min(port + TRIED, 65536)):
        opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        # Without it a port is taken for a minute by the connections of the process that had it.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((host, candidate))
            opened.listen(128)
        except OSError as error:
            opened.close()
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                raise
        else:
            return opened
    raise NoFreePort(f"Ports {port} to {port + TRIED - 1} are taken; ask for another with --port")
