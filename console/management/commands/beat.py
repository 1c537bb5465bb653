"""`manage.py beat`: asks for the sweep, again and again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from console.celery import app


class Command(BaseCommand):
    help = "Run Celery beat, which asks for the sweep. One per installation is enough; more do no harm."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        # The schedule is kept in memory: a file of it may be torn when the process is killed.
        app.Beat(scheduler_cls="celery.beat:Scheduler", loglevel="INFO", quiet=True).run()
