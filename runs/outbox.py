"""Wake-ups: a run's id on the queue of its agent version, sent by name after commit.

A wake-up is only a hint. A broker that is down, full or emptied loses nothing: the sweep finds the run.
"""

from __future__ import annotations

import logging
from functools import partial

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from runs.agents import queue_name

log = logging.getLogger(__name__)


def wake_on_commit(*, run_id: str, agent: str, version: str) -> None:
    """Once the transaction under way has committed, tell a worker that the run may move."""
    transaction.on_commit(partial(wake, run_id=run_id, agent=agent, version=version), robust=True)


def wake(*, run_id: str, agent: str, version: str) -> bool:
    """Tell a worker now. False where the broker did not take it: the sweep will."""
    try:
        current_app.send_task(
            "runs.advance",
            kwargs={"run_id": run_id},
            queue=queue_name(agent, version),
            retry=False,
            expires=60,
        )
    except OperationalError:
        log.warning("wake-up not sent, the sweep finds the run", extra={"run": run_id})
        return False
    return True
