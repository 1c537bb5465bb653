"""`manage.py prepare`: tables and static files as this code wants them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Migrate the database and collect the static files. Safe to run again."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=1)
        if "staticfiles" in settings.STORAGES and not settings.TESTING:
            call_command("collectstatic", interactive=False, verbosity=0)
