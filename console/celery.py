"""The Celery application. It carries ids, never facts: the broker may be emptied at any moment."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import (
    beat_init,
    setup_logging,
    task_prerun,
    worker_process_init,
    worker_ready,
)
from django.db import close_old_connections
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

TRANSPORT_ALIASES.update(
    amqp="console.rabbitmq:Transport",
    pyamqp="console.rabbitmq:Transport",
    amqps="console.rabbitmq:SSLTransport",
    redis="console.valkey:Transport",
    rediss="console.valkey:Transport",
)

app = Celery("handoff", amqp="console.queues:Amqp")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def keep_our_logging(**_kwargs: Any) -> None:
    """Having a receiver is what stops Celery from configuring logging; Django's settings did it."""


@worker_process_init.connect
def leave_the_program_out_of_collections(**_kwargs: Any) -> None:
    """What the program consists of lives as long as it does: looking through it again and again takes half of a
    reduction's time.
    """
    gc.collect()
    gc.freeze()


@task_prerun.connect
def keep_only_a_good_connection(**_kwargs: Any) -> None:
    """A connection that broke, or that the server ended meanwhile, is not used by the next task."""
    close_old_connections()


@worker_ready.connect
@beat_init.connect
def announce_ready(**_kwargs: Any) -> None:
    """Tell whoever started this process that it works: write the pid where the starter looks."""
    if target := os.environ.get("HANDOFF_READY_FILE"):
        Path(target).write_text(str(os.getpid()))
