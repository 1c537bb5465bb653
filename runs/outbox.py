"""Wake-ups: a run's id on the queue of its agent version, sent by name after commit.

A wake-up is only a hint. A broker that is down, full or emptied loses nothing: the sweep finds the run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from runs.agents import queue_name

log = logging.getLogger(__name__)

#: A wake-up that nobody read for so long is dropped: the sweep has made newer ones.
LASTS = timedelta(seconds=60)
#: How long a sender waits for the broker to say that it took a message.
PATIENCE = timedelta(seconds=2)


def wake_on_commit(*, run_id: str, agent: str, version: str) -> None:
    """Once the transaction under way has committed, tell a worker that the run may move."""
    transaction.on_commit(partial(wake, run_id=run_id, agent=agent, version=version), robust=True)


def wake(*, run_id: str, agent: str, version: str, lasts: timedelta = LASTS) -> bool:
    """Tell a worker now. False where the broker did not take it: the sweep will."""
    try:
        _send(run_id=run_id, queue=queue_name(agent, version), lasts=lasts)
    except broker_errors():
        log.warning("wake-up not sent, the sweep finds the run", extra={"run": run_id})
        return False
    return True


def _send(*, run_id: str, queue: str, lasts: timedelta) -> None:
    with current_app.producer_pool.acquire(block=True) as producer, _dropped_if_broken(producer.connection):
        current_app.send_task(
            "runs.advance",
            kwargs={"run_id": run_id},
            queue=queue,
            producer=producer,
            retry=False,
            expires=lasts.total_seconds(),
        )


@contextmanager
def _dropped_if_broken(link: Any) -> Iterator[None]:
    """Without a goodbye: a broker that does not answer does not answer that either."""
    try:
        yield
    except Exception:
        link.collect()
        raise


def broker_errors() -> tuple[type[BaseException], ...]:
    """What a broker that is away, hangs, or refuses this installation raises: each transport has errors of its own."""
    link = current_app.connection_for_write()
    return (OperationalError, *link.connection_errors, *link.channel_errors)
