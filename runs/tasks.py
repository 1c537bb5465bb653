"""Celery tasks: ids in, one call each. A message is only a wake-up; losing or repeating one changes nothing."""

from __future__ import annotations

from celery import shared_task

from runs import engine, heartbeat, recovery


@shared_task(name="runs.advance")
def advance(run_id: str, **_: object) -> None:
    """Move one run as far as it can go."""
    engine.advance(run_id)


@shared_task(name="runs.sweep")
def sweep(**_: object) -> None:
    """Wake every run whose time has come."""
    recovery.sweep()


__all__ = ["advance", "heartbeat", "sweep"]
