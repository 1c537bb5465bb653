"""`manage.py smoke`: the demo's story without a person. Start it by `make smoke`."""

from __future__ import annotations

import os
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from console.embedded.control import NotRunning, Refused, ask
from examples.refunds.demo.people import passwords_in
from examples.refunds.smoke.html import NotOnPage
from examples.refunds.smoke.stage import Stage, StoryFailed
from examples.refunds.smoke.story import play
from examples.refunds.smoke.visitor import NotAnswered
from examples.refunds.tools.wire import service_url


class Command(BaseCommand):
    help = "Play the demo's story through HTTP against the running installation. It has to be a fresh one."

    def handle(self, *args: Any, **options: Any) -> None:
        self.began = time.monotonic()
        home = settings.HANDOFF_HOME
        try:
            console = os.environ.get("HANDOFF_URL") or ask(home, "status")["url"]
            with Stage(home=home, console=console, service=service_url(), say=self.say) as stage:
                stage.sign_in(passwords_in(home.sign_ins))
                counted = play(stage)
        except (StoryFailed, NotOnPage, NotAnswered, NotRunning, Refused) as error:
            raise CommandError(f"The story broke off: {error} Logs: {home.log}") from error
        self.say("Everything is as the story says.")
        self.stdout.write(str(counted))

    def say(self, line: str) -> None:
        """With the seconds that passed, and at once, so that whoever watches sees where it is."""
        self.stdout.write(f"{time.monotonic() - self.began:5.0f} s  {line}")
        self.stdout.flush()
