"""Wake-ups: a run's id on the queue of its agent version, sent by name after commit.

A wake-up is only a hint. A broker that is down, full or emptied loses nothing: the sweep finds the run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
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
#: Workers that tell runs of a changed constraint at the same time. Each works half of the time, PostgreSQL the other.
MARKERS = 4


def wake_on_commit(*, run_id: str, agent: str, version: str) -> None:
    """Once the transaction under way has committed, tell a worker that the run may move."""
    transaction.on_commit(partial(wake, run_id=run_id, agent=agent, version=version), robust=True)


def wake(*, run_id: str, agent: str, version: str, lasts: timedelta = LASTS) -> bool:
    """Tell a worker now. False where the broker did not take it: the sweep will."""
    return _sent("runs.advance", {"run_id": run_id}, queue_name(agent, version), lasts)


def wake_each(*, run_ids: Sequence[str], agent: str, version: str, lasts: timedelta) -> bool:
    """Tell one worker of several runs in one message, which costs it much less than one each. As `wake`."""
    if len(run_ids) == 1:
        return wake(run_id=run_ids[0], agent=agent, version=version, lasts=lasts)
    return _sent("runs.advance_each", {"run_ids": list(run_ids)}, queue_name(agent, version), lasts)


def mark_on_commit() -> None:
    """Once the transaction under way has committed, have the runs told whose constraints changed at their source.

    By so many workers at once: each skips the runs that another has in hand.
    """
    for _ in range(MARKERS):
        transaction.on_commit(partial(_sent, "runs.mark", {}, "handoff", LASTS), robust=True)


def _sent(task: str, arguments: dict[str, Any], queue: str, lasts: timedelta) -> bool:
    try:
        _send(task, arguments, queue, lasts)
    except broker_errors():
        log.warning("wake-up not sent, the sweep finds the runs", extra=arguments)
        return False
    return True


def _send(task: str, arguments: dict[str, Any], queue: str, lasts: timedelta) -> None:
    with current_app.producer_pool.acquire(block=True) as producer, _dropped_if_broken(producer.connection):
        current_app.send_task(
            task,
            kwargs=arguments,
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
