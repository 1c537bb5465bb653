"""`manage.py contract AGENT`: what an agent version promises about state, sending again and versions, in writing."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runs.agents import Agent, registered
from runs.contract import sections


class Command(BaseCommand):
    help = "Print the contract of an agent, made from its declarations. Calls nothing and reads no database."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("agent", metavar="AGENT", help="the name of a registered agent")
        # An option --version would ask for Django's.
        parser.add_argument(
            "of", nargs="?", metavar="VERSION", help="this version only; all where none is named"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        for agent in _chosen(options["agent"], options["of"]):
            self.stdout.write(f"{agent.title} ({agent.name} {agent.version})")
            for section in sections(agent):
                self.stdout.write(f"\n{section.title}")
                for line in section.lines:
                    self.stdout.write(f"  - {line}")
            self.stdout.write("")


def _chosen(name: str, version: str | None) -> list[Agent]:
    found = [a for key, a in registered().items() if key[0] == name and version in (None, key[1])]
    if not found:
        known = ", ".join(" ".join(key) for key in sorted(registered())) or "none"
        raise CommandError(f"No such agent is registered here. Registered: {known}.")
    return found
