"""`manage.py add_agent`: let an organisation use an agent whose code is installed."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Tenant
from runs import agents
from runs.models import Agent


class Command(BaseCommand):
    help = (
        "Let an organisation use an agent of HANDOFF_AGENTS: from then on rights on it can be given on the pages of "
        "people and groups. Said again with another title, it changes the title."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("agent", help="the agent's name in its code")
        parser.add_argument("organisation", help="its short name")
        parser.add_argument(
            "--title", default="", help="what people read; the title in its code where none is given"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = Tenant.objects.filter(slug=options["organisation"]).first()
        if tenant is None:
            raise CommandError(f"There is no organisation {options['organisation']!r}.")
        code = agents.newest(options["agent"])
        if code is None:
            known = ", ".join(sorted({name for name, _version in agents.registered()})) or "none"
            raise CommandError(f"No agent {options['agent']!r} is installed. HANDOFF_AGENTS names: {known}.")
        made = Agent.objects.update_or_create(
            tenant=tenant,
            name=code.name,
            defaults={"title": options["title"] or code.title},
        )[1]
        done = "can use" if made else "could use already"
        self.stdout.write(f"{tenant.name} {done} {code.name}.")
