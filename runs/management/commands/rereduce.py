"""`manage.py rereduce`: compare the rows beside the logs with what the logs amount to, or make them anew."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs.ledger import LogUnreadable, RunMissing
from runs.models import Run
from runs.rereduction import differences, rebuild

TOLD_EVERY = 100


class Command(BaseCommand):
    help = "Make the rows beside the logs anew from the events; with --check only compare. Calls nothing outside."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("runs", nargs="*", metavar="RUN", help="ids of runs; all where none is named")
        parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where rows differ")

    def handle(self, *args: Any, **options: Any) -> None:
        runs = options["runs"] or list(Run.objects.order_by("id").values_list("id", flat=True))
        do = differences if options["check"] else _rebuilt
        bad = sum(self._do(do, run, done, len(runs)) for done, run in enumerate(runs, start=1))
        word = "differ" if options["check"] else "could not be made anew"
        if bad:
            raise CommandError(f"{bad} of {len(runs)} runs {word}; each is named above")
        self.stdout.write(f"{len(runs)} runs: the rows are what the logs say.")

    def _do(self, do: Callable[[str], list[str]], run: str, done: int, total: int) -> bool:
        """Do one run; whether something is wrong with it."""
        try:
            found = do(run)
        except RunMissing:
            found = ["there is no such run, or it has no events"]
        except LogUnreadable as error:
            found = [f"the log cannot be read: {error}"]
        for line in found:
            self.stderr.write(f"{run}: {line}")
        if done % TOLD_EVERY == 0:
            self.stdout.write(f"{done} of {total} runs")
        return bool(found)


def _rebuilt(run: str) -> list[str]:
    rebuild(run)
    return []
