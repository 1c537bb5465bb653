"""`manage.py beat`: asks for the sweep, again and again."""

from __future__ import annotations

from typing import Any

from celery.beat import Scheduler
from django.core.management.base import BaseCommand

from console.celery import app


class Schedule(Scheduler):
    """Kept in memory: a file of it may be torn when the process is killed."""

    #: It sends through the pool, which replaces what is broken. A producer of its own would stay broken once RabbitMQ
    #: was away, and no sweep would ever be asked for again.
    producer = None  # type: ignore[assignment]


class Command(BaseCommand):
    help = "Run Celery beat, which asks for the sweep. One per installation is enough; more do no harm."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        app.Beat(scheduler_cls=f"{__name__}:{Schedule.__name__}", loglevel="INFO", quiet=True).run()
