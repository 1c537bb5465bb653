"""`manage.py demo_reset`: forget what the demo did."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from console.embedded.control import NotRunning, ask
from console.embedded.holding import AlreadyRunning, locked
from console.embedded.home import Home
from console.embedded.identity import wait_until


class Command(BaseCommand):
    help = (
        "Stop the demo and drop its data: database, broker, artifacts, sandbox, sign-ins. "
        "Logs and the tests' data stay."
    )
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        home = Home.default()
        if os.environ.get("DATABASE_URL"):
            raise CommandError("DATABASE_URL names a database that is not the demo's own; drop it yourself")
        if not home.postgres.exists():
            self.stdout.write("There is no demo data.")
            return
        if not home.demo_mark.exists():
            raise CommandError(
                f"{home.root} was not made by make demo; remove it yourself if that is what you want"
            )
        with suppress(NotRunning):
            self.stdout.write("Stopping what runs.")
            ask(home, "down")
        if not wait_until(lambda: self.dropped(home), seconds=60, every=0.5):
            raise CommandError(f"A supervisor still runs in {home.root}; stop it first")
        self.stdout.write("The demo's data is gone; make demo starts anew.")

    def dropped(self, home: Home) -> bool:
        """Remove the data, unless a supervisor still holds the home."""
        try:
            with locked(home):
                for folder in (home.postgres, home.valkey, home.sandbox, home.static, home.artifacts):
                    shutil.rmtree(folder, ignore_errors=True)
                home.sign_ins.unlink(missing_ok=True)
                home.demo_mark.unlink(missing_ok=True)
        except AlreadyRunning:
            return False
        return True
