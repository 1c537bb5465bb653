"""Puts the orders of the demo into the service, which starts with none."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from examples.refunds.csvfile import OrderRow
from examples.refunds.tools.answers import Order
from examples.refunds.tools.wire import Ask, exchange

ORDERS = Path(__file__).with_name("orders.csv")
PATIENCE = timedelta(seconds=5)


def load_orders(rows: Iterable[OrderRow]) -> int:
    """Load each order; one that is there already stays as it is. Returns how many were new. Raises NoAnswer."""
    return sum(_load(row) for row in rows)


def _load(row: OrderRow) -> int:
    """One that somebody changed meanwhile is not set back: that would be a change behind a plan's back."""
    body = {name: value for name, value in row.as_input().items() if name != "order"}
    path = f"/orders/{quote(row.order, safe='')}"
    if exchange(Ask(method="GET", path=path, timeout=PATIENCE)).ok:
        return 0
    exchange(Ask(method="PUT", path=path, body=body, timeout=PATIENCE)).read(Order)
    return 1
