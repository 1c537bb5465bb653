"""`manage.py dying_fleet`: takes runs as a worker does, and holds them until it is killed."""

from __future__ import annotations

import os
import signal
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from evals.orphan_agent import SWITCH, Killed
from runs import engine
from runs.models import Run


class Command(BaseCommand):
    help = "For `bench` only: hold runs of the agent `orphaned`, each where its fate says, until SIGKILL."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="whose runs")
        parser.add_argument("--share", type=int, required=True, help="which part of them")
        parser.add_argument("--of", type=int, required=True, help="how many parts there are")

    def handle(self, *args: Any, **options: Any) -> None:
        SWITCH.dying = True
        runs = Run.objects.filter(tenant__slug=options["tenant"]).order_by("pk")
        for run in runs[options["share"] :: options["of"]]:
            SWITCH.fate = run.goal
            with suppress(Killed):
                engine.advance(run.pk)
        Path(os.environ["HANDOFF_READY_FILE"]).write_text(str(os.getpid()))
        while True:
            signal.pause()
