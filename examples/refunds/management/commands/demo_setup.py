"""`manage.py demo_setup`: the demo's people, orders and runs, once."""

from __future__ import annotations

import os
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from examples.refunds.csvfile import read_orders
from examples.refunds.demo.guide import guide, sign_ins
from examples.refunds.demo.people import OPERATOR, make_house, passwords_in
from examples.refunds.shop import ORDERS, load_orders
from examples.refunds.starting import Started, start_from_csv
from examples.refunds.tools.wire import NoAnswer, service_url

PATIENCE = 20.0  # seconds until the service has to answer


class Command(BaseCommand):
    help = "Make the demo's people, load its orders into the service, start its runs. Safe to run again."

    def handle(self, *args: Any, **options: Any) -> None:
        file = settings.HANDOFF_HOME.sign_ins
        passwords = passwords_in(file)
        agent, people = make_house(passwords)
        data = ORDERS.read_bytes()
        self._load(data)
        operator = people[OPERATOR.username]
        self._tell(start_from_csv(data=data, agent=agent, creator=operator, principal=operator))
        self.stdout.write("\n" + sign_ins(passwords, file=file))
        console = os.environ.get("HANDOFF_URL", "http://127.0.0.1:8000")
        self.stdout.write(guide(console=console, outside=service_url()))

    def _load(self, data: bytes) -> None:
        """Load the orders, as soon as the service answers."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                load_orders(read_orders(data))
            except NoAnswer as error:
                if time.monotonic() > end:
                    raise CommandError(
                        f"The service at {service_url()} does not take the orders: {error} "
                        "Start it with make demo, or set REFUNDS_SERVICE_URL."
                    ) from error
                time.sleep(0.2)
            else:
                return

    def _tell(self, started: Started) -> None:
        if started.runs:
            self.stdout.write(f"Started {len(started.runs)} refund runs.")
        if started.already:
            self.stdout.write(f"{started.already} refund runs were there already.")
