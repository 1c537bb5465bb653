"""`manage.py rights`: grant or withdraw what a person may do with an agent."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from accounts.rights import Right, grant_right, withdraw_right
from runs.clock import database_now
from runs.models import Agent


class Command(BaseCommand):
    help = "Grant or withdraw a person's right on an agent. From its commit on, nothing can rest on a withdrawn one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["grant", "withdraw"])
        parser.add_argument("person", help="username")
        parser.add_argument("right", choices=Right.values)
        parser.add_argument("agent", help="the agent's name")
        parser.add_argument("--tenant", default="", help="its organisation; needed where several have one")

    def handle(self, *args: Any, **options: Any) -> None:
        person = User.objects.filter(username=options["person"]).first()
        if person is None:
            raise CommandError(f"There is nobody with the username {options['person']}")
        agent, right = _agent(options["agent"], options["tenant"]), Right(options["right"])
        change = grant_right if options["action"] == "grant" else withdraw_right
        moved = change(to=person, right=right, obj=agent, actor=None, now=database_now())
        known = f"{person.shown_name}, {right.value} on {agent.name}"
        self.stdout.write(f"{known}: {options['action']} done." if moved else f"{known}: it was so already.")


def _agent(name: str, tenant: str) -> Agent:
    found = Agent.objects.filter(name=name)
    found = found.filter(tenant__slug=tenant) if tenant else found
    try:
        return found.get()
    except Agent.DoesNotExist as error:
        raise CommandError(f"There is no agent {name}") from error
    except Agent.MultipleObjectsReturned as error:
        raise CommandError(f"Several organisations have an agent {name}; say which with --tenant") from error
