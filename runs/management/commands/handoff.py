"""`manage.py handoff RUN`: what a person has to know who takes the run over, as Markdown or JSON."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from runs.access import RunNotFound, run_for
from runs.clock import database_now
from runs.ledger import LogUnreadable, RunMissing, load
from runs.machine import handoff_document
from runs.machine import state as s
from runs.pages import next_action, who
from runs.pages.handoff_markdown import markdown
from runs.queries import holders_of


class Command(BaseCommand):
    help = (
        "Print the handoff of a run: what was asked, what happened, what may have happened, what is not allowed, the "
        "next safe step, and what must never be sent again. It changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", help="the run's id")
        parser.add_argument("--json", action="store_true", help="as JSON (static/schemas/handoff-1.json)")
        parser.add_argument(
            "--as", dest="person", default="", metavar="PERSON",
            help="username of who takes it over: shows what they may see, and says whether they may take the next step",
        )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            mine = _rights(options["person"], options["run"]) if options["person"] else None
            state = load(options["run"])
        except (RunNotFound, RunMissing) as error:
            raise CommandError(f"There is no run {error} to see.") from error
        except LogUnreadable as error:
            raise CommandError(f"The log cannot be read: {error}") from error
        self.stdout.write(_printed(state, mine, as_json=options["json"]), ending="")


def _printed(state: s.RunState, mine: frozenset[Any] | None, *, as_json: bool) -> str:
    rights = None if mine is None else frozenset(right.value for right in mine)
    found = handoff_document.document(state, database_now(), rights=rights)
    if as_json:
        return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"
    return markdown(found, next_action.shown(state, mine or frozenset()))


def _rights(username: str, run_id: str) -> frozenset[Any]:
    person = User.objects.filter(username=username).first()
    if person is None:
        raise CommandError(f"There is nobody with the username {username}.")
    run = run_for(person, run_id)
    return who.rights_of(person, holders_of(who.ACTING, run))
