"""Lives of constraints: one that code holds a plan to, one that the agent inferred, a scope that was widened, and some
that people hold for a run, change and end.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

from django.db import transaction

from accounts.rights import Right
from examples.lives.agent import SCOPE, SCOPED
from runs import actions, constrained
from runs.machine import decide
from runs.machine.constraints import term_digest
from runs.models import Agent, Statement

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
WORDS = "The supplier’s bank account was compared with the contract."
OTHER_WORDS = "The supplier’s bank account was compared with the contract by two people."


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


def limit(run: Run, by: User) -> None:
    """One more constraint, for this run alone: what was planned and approved without it is void."""
    with transaction.atomic():
        _row, state, _now = actions.locked(by, run.pk, Right.VIEW_RUNS)
        actions.limit_run(
            person=by, run_id=run.pk, name="account compared", text=WORDS, predicate="", submission=uuid4(),
            reason="A supplier was paid to a stranger’s account.", impact=decide.limit_impact(state).digest,
        )  # fmt: skip


def held_for(run: Run) -> Statement | None:
    """The constraint that people hold for the run, as it is stated now."""
    return Statement.objects.filter(run=run).order_by("version").last()


def revoke(run: Run, by: User) -> None:
    """The constraint of the run, at its source."""
    latest, seen = _held(run)
    actions.withdraw_constraint(
        person=by, latest=latest, reason="The bank compares accounts by itself now.", seen=seen,
        submission=uuid4(), about=run,
    )  # fmt: skip


def amend(run: Run, by: User) -> None:
    """The constraint of the run says something else from now on."""
    latest, seen = _held(run)
    actions.amend_constraint(
        person=by, latest=latest, text=OTHER_WORDS, predicate="", reason="One person is not enough.", seen=seen,
        submission=uuid4(),
    )  # fmt: skip


def accept(run: Run, by: User) -> None:
    """What the run's amended constraint says now, once the run was told of it."""
    with transaction.atomic():
        _row, state, _now = actions.locked(by, run.pk, Right.VIEW_RUNS)
        for constraint in state.constraints:
            if constraint.amended:
                actions.accept_amendment(
                    person=by, run_id=run.pk, number=constraint.number, seen=term_digest(constraint.amended.term),
                    reason="Two people compared it this morning.", submission=uuid4(),
                )  # fmt: skip


def accepted(run: Run) -> bool:
    """Whether a person took the new text for the run."""
    return run.events.filter(type="AmendmentAccepted").exists()


def _held(run: Run) -> tuple[Statement, str]:
    """What counts, and the digest of all that rests on it."""
    latest = held_for(run)
    if latest is None:
        raise ValueError(f"nobody holds a constraint for {run.pk}")
    return latest, constrained.impact(tenant_id=latest.tenant_id, ref=latest.ref).digest
