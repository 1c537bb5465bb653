"""`manage.py up`: everything, until Ctrl-C."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from dataclasses import replace
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from console.embedded.holding import AlreadyRunning
from console.embedded.home import Home, NotOurFolder
from console.embedded.installation import Installation
from console.embedded.postgres_programs import NoPostgres
from console.embedded.process import DidNotStart
from console.embedded.steps import Once
from console.embedded.supervisor import Supervisor
from console.embedded.valkey import NoValkey
from console.ports import NoFreePort

EXPECTED = (AlreadyRunning, DidNotStart, NoFreePort, NoPostgres, NoValkey, NotOurFolder)


class Command(BaseCommand):
    help = "Run servers, web, worker and beat under one supervisor, and start again what dies."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=os.environ.get("HANDOFF_HOST", "127.0.0.1"))
        parser.add_argument("--port", type=int, default=int(os.environ.get("HANDOFF_PORT", "8000")))
        parser.add_argument("--concurrency", type=int, default=4, help="tasks at the same time (4)")
        parser.add_argument("--servers", action="store_true", help="only the servers and the tables")
        parser.add_argument("--fresh", action="store_true", help="drop all that is kept in the home first")
        parser.add_argument(
            "--then", default="", help="once all is up, run this command and stop all after it"
        )
        parser.add_argument(
            "--demo", action="store_true", help="with the refund agent, its sandbox and demo data"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        home = Home.default()
        try:
            plan = Installation.plan(
                home,
                host=options["host"],
                port=options["port"],
                concurrency=options["concurrency"],
                demo=options["demo"],
            )
            self.say(f"Everything is kept in {home.root}, logs in {home.log}.")
            self.run(plan, servers_only=options["servers"], then=options["then"], fresh=options["fresh"])
        except EXPECTED as error:
            raise CommandError(str(error)) from error

    def run(self, plan: Installation, *, servers_only: bool, then: str, fresh: bool) -> None:
        steps = plan.servers() if servers_only else plan.steps()
        last = (
            replace(plan.once(then), done="")
            if then
            else Once(name="all", done="", call=lambda: self.tell(plan, servers_only))
        )
        supervisor = Supervisor(plan.home, say=self.say, facts=plan.facts())
        supervisor.run([*steps, last], stay=not then, fresh=fresh)

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def tell(self, plan: Installation, servers_only: bool) -> None:
        """Where to go. Said last, so that it stands at the bottom of the terminal."""
        if not servers_only:
            self.say(f"\nOpen {plan.url}")
        if plan.sandbox_url:
            self.say(f"The outside world, with its switches: {plan.sandbox_url}")
        self.say("Ctrl-C stops everything and leaves the data.")
