"""`manage.py bench`: measure, print a line per figure, keep them in `bench.json`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from evals import durable_step, orphans, pages, policies, reduction, revalidation, sweeping, withdrawal
from evals.figures import Figure, write
from runs.clock import database_now

GROUPS: dict[str, Callable[..., Iterator[Figure]]] = {
    "durable_step": durable_step.measure,
    "reduction": reduction.measure,
    "policy": policies.measure,
    "revalidation": revalidation.measure,
    "pages": pages.measure,
    "orphans": orphans.measure,
    "withdrawal": withdrawal.measure,
    "sweeping": sweeping.measure,  # last, since it fills the table of runs
}


class Command(BaseCommand):
    help = "Measure the runtime on the database of the settings. Leaves its rows there: use one of its own."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--only", nargs="*", choices=list(GROUPS), default=list(GROUPS))
        parser.add_argument("--to", type=Path, default=settings.HANDOFF_HOME.root.parent / "bench.json")

    def handle(self, *args: Any, **options: Any) -> None:
        figures = []
        for name in options["only"]:
            for figure in GROUPS[name]():
                self.stdout.write(figure.line)
                self.stdout.flush()
                figures.append(figure)
        write(figures, to=options["to"], at=database_now())
