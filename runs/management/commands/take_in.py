"""`manage.py take_in FILE --as PERSON`: take a run in from its checkpoint."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Tenant, User
from runs import actions, checkpoints
from runs.artifacts import ArtifactNotKept, ArtifactTooLarge
from runs.machine.checkpoint import CheckpointRefused


class Command(BaseCommand):
    help = (
        "Take a run in from its checkpoint, where its own database is gone. It goes on under the same id and keys, "
        "with the runs that it started; what was in flight is asked about first, and approval is asked for anew."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", help="the file that manage.py checkpoint wrote; - reads it in"
        )
        parser.add_argument(
            "--as", dest="person", required=True, metavar="PERSON",
            help="username of the person who takes it in, and on whose behalf it acts from now on",
        )  # fmt: skip
        parser.add_argument(
            "--tenant", default="", metavar="TENANT", help="the organisation, where the person is of several"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        person = User.objects.filter(username=options["person"]).first()
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if person is None or (options["tenant"] and tenant is None):
            missing = f"tenant {options['tenant']}" if person else f"person {options['person']}"
            raise CommandError(f"There is no {missing}. Nothing was taken in.")
        try:
            taken = checkpoints.read(_data(options["file"]))
            run = actions.take_in(person=person, taken=taken, tenant=tenant)
        except (CheckpointRefused, ArtifactNotKept, ArtifactTooLarge) as error:
            raise CommandError(f"Nothing was taken in. {error}") from error
        known = taken.runs[0].document
        self.stdout.write(
            f"{run.pk} was taken in as of event {known.seq}, checkpoint {taken.runs[0].digest}."
        )


def _data(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"{file} could not be read: {error}. Nothing was taken in.") from error
