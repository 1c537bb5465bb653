"""Runs of one lineage that are open at the same time, as a parent and its child are."""

from __future__ import annotations

from runs import actions
from runs.clock import database_now
from runs.ledger import append
from runs.machine import events as e
from runs.machine.canonical import canonical
from runs.models import Run
from tests.people import House


def relative(house: House, of: Run, order: str = "1042", amount: str = "50.00", **more: object) -> Run:
    """A run of the same lineage that inherits nothing: what stands in `of` it has to find by itself."""
    now, id_ = database_now(), actions.new_run_id()
    run = Run.objects.create(
        id=id_, tenant_id=of.tenant_id, agent=of.agent, agent_version="1", lineage=of.lineage, goal="Pay",
        start_key=id_, principal=of.principal, created_at=now, since=now, at=now, wake_at=now, state="planning",
    )  # fmt: skip
    started = e.RunStarted(
        run=id_, tenant=str(of.tenant_id), agent="payer", agent_version="1", goal="Pay",
        input=e.raw(canonical({"order": order, "amount": amount, **more})), creator=str(house.operator.pk),
        principal=str(house.operator.pk), lineage=of.lineage, start_key=id_, constraints=(),
    )  # fmt: skip
    append(None, [started], actor=actions.person_actor(house.operator), now=now)
    return run
