"""`manage.py checkpoint RUN`: write the checkpoint of a run, with which it can go on elsewhere."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs import checkpoints
from runs.ledger import LogUnreadable, RunMissing


class Command(BaseCommand):
    help = (
        "Write the checkpoint of a run as of its latest event: what it means to do and on what terms, results by key, "
        "the key of each effect that may still come. It changes nothing and holds no credential. "
        "manage.py take_in takes it in."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="the run's id")
        parser.add_argument(
            "--to",
            type=Path,
            metavar="FILE",
            help="write it there, readable by you alone; else to the standard output",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            written = checkpoints.write(options["run"])
        except RunMissing as error:
            raise CommandError(f"There is no run {error}.") from error
        except LogUnreadable as error:
            raise CommandError(f"Nothing was written: {error}") from error
        for why in written.left_out:
            self.stderr.write(f"Left out: {why}")
        if options["to"] is None:
            self.stdout.write(written.text, ending="")
        else:
            _write(options["to"], written.text)


def _write(file: Path, text: str) -> None:
    try:
        file.touch(mode=0o600)
        file.write_text(text)
    except OSError as error:
        raise CommandError(f"{file} could not be written: {error}") from error
