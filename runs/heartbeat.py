"""A worker says that it lives, and which queues it reads, in a table of ours: the broker cannot be asked that."""

from __future__ import annotations

import logging
from typing import Any

from celery.signals import worker_ready
from django.conf import settings
from django.db import Error, connection

from runs import recovery

log = logging.getLogger(__name__)


def beat(name: str) -> None:
    """Announce this worker. A database that is away is no reason to stop: the next beat tries again."""
    try:
        recovery.announce(name)
    except Error:
        log.warning("the worker could not announce itself", extra={"worker": name})
        connection.close()


@worker_ready.connect
def _on_ready(sender: Any, **_: object) -> None:
    beat(sender.hostname)
    interval = settings.HANDOFF_DURATIONS.heartbeat.total_seconds()
    sender.timer.call_repeatedly(interval, beat, (sender.hostname,))
