"""`manage.py add_agent`: let an organisation use an agent whose code is installed."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Tenant
from accounts.people_log import PeopleRefusedError
from runs.actions import AgentStandsError, add_agent, title_agent
from runs.clock import database_now


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
        name, title = options["agent"], options["title"]
        try:
            done = "can use" if _added(tenant, name, title) else "could use already"
        except PeopleRefusedError as error:
            raise CommandError(error.sentence) from error
        self.stdout.write(f"{tenant.name} {done} {name}.")


def _added(tenant: Tenant, name: str, title: str) -> bool:
    """Whether the organisation could not use it before; where it could, a title that was given is its title now."""
    try:
        add_agent(tenant=tenant, name=name, title=title, actor=None, now=database_now())
    except AgentStandsError as stands:
        title_agent(agent=stands.agent, title=title, actor=None, now=database_now())
        return False
    return True
