"""`manage.py rights`: grant or withdraw what a person may do with a tenant, an agent or a run."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Tenant, User
from accounts.rights import MisplacedRightError, Right, grant_right, withdraw_right
from runs.clock import database_now
from runs.models import Agent, Run


class Command(BaseCommand):
    help = (
        "Grant or withdraw a person's right on an agent, a run, or a whole organisation. "
        "From its commit on, nothing can rest on a withdrawn one."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["grant", "withdraw"])
        parser.add_argument("person", help="username")
        parser.add_argument("right", choices=Right.values)
        parser.add_argument(
            "on", nargs="?", default="", help="an agent's name or a run's id; left out: --tenant as a whole"
        )
        parser.add_argument(
            "--tenant", default="", help="the organisation; needed where several have the agent"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        person = User.objects.filter(username=options["person"]).first()
        if person is None:
            raise CommandError(f"There is nobody with the username {options['person']}")
        place, right = _place(options["on"], options["tenant"]), Right(options["right"])
        change = grant_right if options["action"] == "grant" else withdraw_right
        try:
            moved = change(to=person, right=right, obj=place, actor=None, now=database_now())
        except MisplacedRightError as error:
            raise CommandError(str(error)) from error
        known = f"{person.shown_name}, {right.value} on {options['on'] or options['tenant']}"
        self.stdout.write(f"{known}: {options['action']} done." if moved else f"{known}: it was so already.")


def _place(name: str, tenant: str) -> Tenant | Agent | Run:
    if not name and not tenant:
        raise CommandError("Say on what: an agent's name, a run's id, or --tenant for a whole organisation")
    if not name:
        return _tenant(tenant)
    run = Run.objects.filter(pk=name, **({"tenant__slug": tenant} if tenant else {})).first()
    return run or _agent(name, tenant)


def _tenant(slug: str) -> Tenant:
    found = Tenant.objects.filter(slug=slug).first()
    if found is None:
        raise CommandError(f"There is no organisation {slug}")
    return found


def _agent(name: str, tenant: str) -> Agent:
    found = Agent.objects.filter(name=name)
    found = found.filter(tenant__slug=tenant) if tenant else found
    try:
        return found.get()
    except Agent.DoesNotExist as error:
        raise CommandError(f"There is no agent or run {name}") from error
    except Agent.MultipleObjectsReturned as error:
        raise CommandError(f"Several organisations have an agent {name}; say which with --tenant") from error
