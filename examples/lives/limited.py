"""Lives of constraints: one that code holds a plan to, one that the agent inferred, and a scope that was widened."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

from examples.lives.agent import SCOPE, SCOPED
from runs import actions
from runs.models import Agent

if TYPE_CHECKING:
    from accounts.models import User
    from runs.models import Run

NARROW = {
    "name": "scope",
    "text": "Only orders of this department.",
    "predicate": "tool != 'pay' || arguments.order == 'scope_widened'",
}
WIDE = {
    "name": "scope",
    "text": "Orders of any department.",
    "predicate": "tool != 'pay' || arguments.order != ''",
}


def scoped(agent: Agent) -> Agent:
    """The rehearsal's agent whose limits a file states, beside the one given."""
    return Agent.objects.get(tenant_id=agent.tenant_id, name=SCOPED.name)


def state(limit: dict[str, str]) -> None:
    """What the file says from here on. It is put in place whole."""
    SCOPE.parent.mkdir(parents=True, exist_ok=True)
    new = SCOPE.with_suffix(".new")
    new.write_text(json.dumps({"constraints": [limit]}, indent=1), encoding="utf-8")
    new.replace(SCOPE)


def confirm(run: Run, by: User) -> None:
    """What the agent inferred, once."""
    if not confirmed(run):
        actions.confirm_constraint(
            person=by,
            run_id=run.pk,
            number=_last(run),
            note="It stands in § 4 of the contract.",
            submission=uuid4(),
        )


def confirmed(run: Run) -> bool:
    """Whether a person stands for what was inferred."""
    return run.events.filter(type="ConstraintConfirmed").exists()


def _last(run: Run) -> int:
    return run.constraints.count()
