"""Celery tasks: ids in, one call each. A message is only a wake-up; losing or repeating one changes nothing."""

from __future__ import annotations

import logging

from celery import shared_task
from django.db import close_old_connections

from runs import actions, configuration, engine, heartbeat, recovery

MARK_AT_ONCE = 1000
log = logging.getLogger(__name__)


@shared_task(name="runs.advance")
def advance(run_id: str, **_: object) -> None:
    """Move one run as far as it can go."""
    engine.advance(run_id)


@shared_task(name="runs.advance_each")
def advance_each(run_ids: list[str], **_: object) -> None:
    """Move several runs, one after the other; one that cannot be moved keeps none of the others from it."""
    for run_id in run_ids:
        try:
            engine.advance(run_id)
        except Exception:
            log.exception("a run could not be moved; the sweep finds it again", extra={"run": run_id})
            close_old_connections()  # one that broke would keep all that follow from being moved


@shared_task(name="runs.mark")
def mark(**_: object) -> None:
    """Tell runs of constraints that changed where they are held. Ended halfway, the sweep goes on with it."""
    while actions.mark_constraints(MARK_AT_ONCE):
        pass


@shared_task(name="runs.sweep")
def sweep(**_: object) -> None:
    """Wake every run whose time has come."""
    recovery.sweep()


@shared_task(name="runs.ask_configurations")
def ask_configurations(**_: object) -> None:
    """Ask the documents that constraints come from, so that a change counts before a run asks."""
    configuration.ask_due()


__all__ = ["advance", "ask_configurations", "heartbeat", "sweep"]
