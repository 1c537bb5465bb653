"""Starts one run for each order of a CSV: all of them or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django.db import transaction

from accounts.models import User
from examples.refunds.agent import REFUNDS
from examples.refunds.csvfile import OrderRow, read_orders
from runs.actions import AlreadyStarted, lend_all, start_run
from runs.models import Agent, Grant, Run

#: Said after so many rows: often enough to see that it moves, seldom enough to cost nothing.
TOLD_EVERY = 250
#: More than so many are left to the sweep: a message for each would take about as long as starting them all.
WOKEN_AT_ONCE = 100
Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The runs that were started, in the file's order, on which grant, and how many rows had a run from before."""

    runs: tuple[Run, ...]
    already: int
    grant: Grant | None


def start_from_csv(
    *,
    data: bytes,
    agent: Agent,
    creator: User,
    principal: User,
    told: Told | None = None,
    lend: Callable[[], Grant] | None = None,
) -> Started:
    """Start a run for each row that has none yet, all on the one grant of the principal that `lend` gives.

    It is asked once the first run is to start, so a file of which all is started already lends nothing; without it all
    that the agent does is lent, as long as the profile says. `told` hears how many rows of how many are done.

    Raises csvfile.CsvRefused with the rows at fault; then no run was started. All are started in one
    transaction.
    """
    rows = read_orders(data)
    runs: list[Run] = []
    grant: Grant | None = None
    with transaction.atomic():
        known, wake = _known(agent, rows), len(rows) <= WOKEN_AT_ONCE
        for done, row in enumerate(rows, start=1):
            if row.start_key in known:
                run = None
            else:
                grant = grant or (lend or _lend_all(agent, principal))()
                run = _start(row, agent, creator, principal, wake, grant)
            if run:
                runs.append(run)
            if told and (done % TOLD_EVERY == 0 or done == len(rows)):
                told(done, len(rows))
    return Started(runs=tuple(runs), already=len(rows) - len(runs), grant=grant)


def _lend_all(agent: Agent, principal: User) -> Callable[[], Grant]:
    return partial(lend_all, agent=agent, version=REFUNDS.version, principal=principal)


def _known(agent: Agent, rows: tuple[OrderRow, ...]) -> set[str]:
    """The start keys that are used already, in one query."""
    keys = [row.start_key for row in rows]
    return set(
        Run.objects.filter(tenant_id=agent.tenant_id, agent=agent, start_key__in=keys).values_list(
            "start_key", flat=True
        )
    )


def _start(
    row: OrderRow, agent: Agent, creator: User, principal: User, wake: bool, grant: Grant
) -> Run | None:
    """The run of one row; None where somebody else started it a moment ago."""
    try:
        return start_run(
            agent=agent, version=REFUNDS.version, goal=row.goal, input={**row.as_input()},
            start_key=row.start_key, creator=creator, principal=principal, wake=wake, grant=grant,
        )  # fmt: skip
    except AlreadyStarted:
        return None
