"""What a queue is: a place where wake-ups wait for a moment, and which goes where nobody reads it.

A broker that knows neither (Redis, Valkey) ignores both; there an expired message is dropped when it is read.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from celery.app.amqp import AMQP
from celery.app.amqp import Queues as CeleryQueues

from runs.outbox import LASTS

#: A queue that no worker read for so long is dropped by the broker; its next reader or sender makes it again.
UNREAD = timedelta(hours=1)


class Queues(CeleryQueues):
    """Every queue, asked for by name or by default. Sender and reader must declare the same, or RabbitMQ refuses."""

    def __setitem__(self, name: str, queue: Any) -> None:
        queue.message_ttl = LASTS.total_seconds()
        queue.expires = UNREAD.total_seconds()
        super().__setitem__(name, queue)


class Amqp(AMQP):
    """Celery's messaging with our queues."""

    queues_cls = Queues
