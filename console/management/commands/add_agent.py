"""`manage.py add_agent`: let an organisation use an agent whose code is installed."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accounts.models import PeopleAction, Tenant
from accounts.people_log import keep_change
from runs import agents
from runs.clock import database_now
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
        made = _keep(tenant, code.name, options["title"] or code.title)
        done = "can use" if made else "could use already"
        self.stdout.write(f"{tenant.name} {done} {code.name}.")


def _keep(tenant: Tenant, name: str, title: str) -> bool:
    """Whether the organisation could not use it before; that, or another title, is a line of the log."""
    with transaction.atomic():
        agent, made = Agent.objects.select_for_update().get_or_create(
            tenant=tenant, name=name, defaults={"title": title}
        )
        if made or agent.title != title:
            done = PeopleAction.AGENT_ADDED if made else PeopleAction.AGENT_TITLED
            titles: dict[str, Any] = {"became": title} if made else {"was": agent.title, "became": title}
            keep_change(done, actor=None, now=database_now(), tenant=tenant, name=name, **titles)
            agent.title = title
            agent.save(update_fields=["title"])
    return made
