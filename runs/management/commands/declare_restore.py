"""Say that this database was put back from a copy, which no identifier of it can tell."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from runs.clock import database_now
from runs.models import CLOSED, Restore, Run


class Command(BaseCommand):
    help = (
        "Declare that the database was restored from a copy. No effect of an open run is then sent for the first "
        "time before the outside was asked for it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("note", help="from which copy, and why; kept")

    def handle(self, *args: Any, **options: Any) -> None:
        Restore.objects.create(note=options["note"], at=database_now())
        open_runs = Run.objects.exclude(state__in=CLOSED).count()
        self.stdout.write(
            f"Declared. {open_runs} open runs ask before they send anything for the first time."
        )
