"""`manage.py ctl`: ask the running supervisor."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from console.embedded.control import Answer, NotRunning, Refused, ask
from console.embedded.holding import held
from console.embedded.home import Home
from console.embedded.identity import wait_until


class Command(BaseCommand):
    help = "Show, stop, start or kill the processes of the running supervisor."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = ["status", "start", "stop", "restart", "kill", "down"]
        parser.add_argument(
            "action", choices=actions, help="kill is SIGKILL for a whole group; down stops all"
        )
        parser.add_argument("name", nargs="?", help="postgres, valkey, worker, beat, web, sandbox")
        parser.add_argument("--keep-down", action="store_true", help="after kill: do not start it again")
        parser.add_argument("--json", action="store_true", help="answer with one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        action, name = options["action"], options["name"]
        if action in {"start", "stop", "restart", "kill"} and not name:
            raise CommandError(f"Say which process to {action}")
        try:
            answer = ask(Home.default(), action, name=name, keep_down=options["keep_down"])
        except (NotRunning, Refused) as error:
            raise CommandError(str(error)) from error
        if action == "down":
            self.gone(Home.default())
        else:
            self.stdout.write(json.dumps(answer) if options["json"] else told(answer))

    def gone(self, home: Home) -> None:
        """Wait until the supervisor has stopped everything: its lock is free then."""
        if not wait_until(lambda: not held(home), seconds=90, every=0.1):
            raise CommandError("The supervisor is still stopping; look at its log")
        self.stdout.write("Everything is stopped; the data stays.")


def told(answer: Answer) -> str:
    """The status as a small table."""
    lines = [f"{answer['home']}  {answer['url']}"]
    for name, process in answer["processes"].items():
        word = "ready" if process["ready"] else process["state"]
        lines.append(f"  {name:<10} {word:<8} {process['pid'] or ''}")
    return "\n".join(lines)
