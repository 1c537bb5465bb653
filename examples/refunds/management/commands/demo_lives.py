"""`manage.py demo_lives`: one run of the demo for each reason why a run can need a person, and for each way in which an
approval ends unused.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from examples.lives.lives import begin, follow
from examples.lives.stage import stage
from examples.refunds.demo.people import make_house, passwords_in
from runs.models import Run

PAUSE = 0.3  # seconds between two looks


class Command(BaseCommand):
    help = "Start one run for each reason why a run can need a person, and wait until the workers have stopped them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--patience", type=float, default=90.0, help="seconds to wait for the workers")

    def handle(self, *args: Any, **options: Any) -> None:
        refunds, people = make_house(passwords_in(settings.HANDOFF_HOME.sign_ins))
        agent, who = stage(refunds, people)
        try:
            runs = begin(agent, who)
        except KeyError as error:
            raise CommandError(
                "The rehearsal's agent is not registered: add examples.lives.agent:LIVES to HANDOFF_AGENTS."
            ) from error
        end = time.monotonic() + options["patience"]
        while (left := follow(runs, who)) and time.monotonic() < end:
            time.sleep(PAUSE)
        self._tell(runs, left)

    def _tell(self, runs: Mapping[str, Run], left: list[str]) -> None:
        for reason, run in runs.items():
            self.stdout.write(f"{reason:22} /runs/{run.pk}/" + (" not stopped yet" if reason in left else ""))
        if left:
            raise CommandError(
                "Some runs have not stopped for their reason. Are workers running (make demo)?"
            )
