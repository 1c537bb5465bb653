"""`manage.py signal RUN NAME [PAYLOAD]`: give a run an answer, as a program does for a person."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from runs import actions
from runs.access import NotPermitted, RunNotFound
from runs.answers import AnswerWrong, name_of, payload_of
from runs.machine.transitions import Refused


class Command(BaseCommand):
    help = (
        "Give a run an answer. It is kept until a step waits for it. With --id the same one is recorded once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="the run's id")
        parser.add_argument("name", metavar="NAME", help="the name of the answer, as the agent asks for it")
        parser.add_argument(
            "payload", metavar="PAYLOAD", nargs="?", default="", help="JSON, or any other text; none: null"
        )
        parser.add_argument(
            "--as",
            dest="person",
            required=True,
            metavar="PERSON",
            help="username of the person whose answer it is",
        )
        parser.add_argument(
            "--id", default="", help="the sender's own id of this answer: sent twice, recorded once"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        person = User.objects.filter(username=options["person"]).first()
        if person is None:
            raise CommandError(
                f"There is nobody with the username {options['person']}. Nothing was recorded."
            )
        try:
            done = actions.signal_run(
                person=person, run_id=options["run"], name=name_of(options["name"]),
                payload=payload_of(options["payload"]), submission=_submission(options["run"], options["id"]),
            )  # fmt: skip
        except RunNotFound as error:
            raise CommandError(f"{person.shown_name} sees no run {error}. Nothing was recorded.") from error
        except (AnswerWrong, NotPermitted, Refused) as error:
            raise CommandError(f"Nothing was recorded: {error}") from error
        said = "was recorded before" if done.repeated else "is recorded"
        self.stdout.write(f"{done.run}: the answer {options['name']} {said}, event {done.seq}.")


def _submission(run: str, sent: str) -> UUID:
    """One id for each of the sender's own; a new one where the sender names none."""
    return uuid5(NAMESPACE_URL, f"handoff:signal:{run}:{sent}") if sent else uuid4()
