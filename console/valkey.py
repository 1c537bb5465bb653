"""Valkey, whose death a worker outlives.

A message that is acknowledged, or given back, on a channel that was closed meanwhile ends the library in an
AttributeError, and with it the worker. It is told that the connection is gone, which it knows how to take.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import redis
from redis.exceptions import ConnectionError as ConnectionGone


class Channel(redis.Channel):
    """The library's, which says so where it was closed."""

    def _connparams(self, *args: Any, **kwargs: Any) -> Any:
        if getattr(self.connection, "client", None) is None:
            raise ConnectionGone("the channel is closed; what was not acknowledged comes again")
        return super()._connparams(*args, **kwargs)  # type: ignore[misc]  # its stubs know only what is public


class Transport(redis.Transport):
    Channel = Channel
