"""`manage.py worker`: one Celery worker on the queues of the agent versions this code has."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from console.celery import app
from runs.agents import served_queues


class Command(BaseCommand):
    help = "Run a Celery worker that serves the versions of the agents in HANDOFF_AGENTS."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--concurrency", type=int, default=2, help="processes that run tasks (2)")
        parser.add_argument(
            "--queues", default="", help="comma separated; by default all that this code can serve"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        queues = options["queues"] or ",".join(served_queues())
        app.worker_main(
            [
                "worker",
                f"--hostname=handoff-{os.getpid()}@%h",
                f"--queues={queues}",
                f"--concurrency={options['concurrency']}",
                "--pool=prefork",
                "--loglevel=INFO",
                "--without-gossip",
                "--without-mingle",
            ]
        )
