"""`manage.py artifacts`: check what is kept, remove what nothing points to, drop summaries."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs import inventory, summaries
from runs.clock import database_now
from runs.models import Summary


class Command(BaseCommand):
    help = "Look through the storage of artifacts. Events are never changed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "--check", action="store_true", help="verify every hash; exit 1 where bytes are lost or changed"
        )
        what.add_argument(
            "--sweep", action="store_true", help="remove files that nothing points to and that are a day old"
        )
        what.add_argument(
            "--drop-summaries", nargs="*", metavar="RUN", help="forget the summaries of these runs, or all"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["check"]:
            self._check()
        elif options["sweep"]:
            self._sweep()
        else:
            self._drop(options["drop_summaries"])

    def _check(self) -> None:
        found = inventory.look()
        for line in found.lost:
            self.stderr.write(line)
        self.stdout.write(
            f"{found.artifacts} artifacts, {len(found.lost)} of them lost or changed; {found.summaries} summaries, "
            f"{found.to_make_again} to be made again; {len(found.orphans)} files that nothing points to."
        )
        if found.lost:
            raise CommandError(
                "Put the files named above back from a copy of the storage; nothing was changed."
            )

    def _sweep(self) -> None:
        removed = inventory.sweep(database_now())
        for file in removed:
            self.stdout.write(f"removed {file}")
        self.stdout.write(
            f"{len(removed)} files were removed. Files of the last day, and those in use, stay."
        )

    def _drop(self, runs: list[str]) -> None:
        found = Summary.objects.filter(run_id__in=runs) if runs else Summary.objects.all()
        number = summaries.drop(found)
        self.stdout.write(f"{number} summaries were dropped. Each is made again when its run needs it.")
