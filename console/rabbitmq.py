"""RabbitMQ, waited for no longer than it deserves.

The library waits without end for every answer after a connection's first. A server that is stopped, or that blocks
senders because its memory or disk is full, would so hold a page for ever.
"""

from __future__ import annotations

from kombu.transport import pyamqp

from runs.outbox import PATIENCE


class Connection(pyamqp.Connection):
    """The library's, with a limit for each wait that has none."""

    def drain_events(self, timeout: float | None = None) -> None:
        # With 0 it only looks whether something is there.
        super().drain_events(timeout=PATIENCE.total_seconds() if timeout is None else timeout)


class Transport(pyamqp.Transport):
    Connection = Connection


class SSLTransport(pyamqp.SSLTransport):
    Connection = Connection
