"""A person adds a constraint to a run, and confirms one that its agent inferred.

A constraint is a part of what the run is committed to, as its goal is: adding one takes the same right.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from accounts.models import User
from accounts.rights import Right
from runs.actions.constraints import hold, refuse_words
from runs.actions.frame import Done, by_person
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import plain
from runs.machine.transitions import Refused
from runs.models import Run
from runs.sources import held

LIMIT: Final = "limit run"
CONFIRM: Final = "confirm constraint"


class LimitMoved(Exception):
    """It would do something else than the person was shown. Nothing changed. `now` is what it would do."""

    def __init__(self, now: decide.LimitImpact) -> None:
        self.now = now
        super().__init__("the impact of the constraint is another one")


def limit_run(
    *,
    person: User,
    run_id: str,
    name: str,
    text: str,
    predicate: str,
    reason: str,
    impact: str,
    submission: UUID,
) -> Done:
    """The run accepts one more constraint, where that does what the person was shown: `impact` is the digest of
    `decide.limit_impact`. It is held here, for this run alone. From the commit nothing is sent on the plan before.

    Raises ConstraintRefused, LimitMoved; Refused where the run has ended or is ending; access.RunNotFound,
    access.NotPermitted.
    """

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        refuse_words(name=name, text=text, predicate=predicate, reason=reason)
        if decide.cannot_limit(state):
            raise Refused(state.state, "ConstraintAccepted")
        now_does = decide.limit_impact(state)
        if now_does.digest != impact:
            raise LimitMoved(now_does)
        row = hold(
            Run.objects.get(pk=run_id),
            person=person,
            name=name,
            text=text,
            predicate=predicate,
            reason=reason,
            now=now,
        )
        return decide.accept(state, held.term_of(row), reason=plain(reason))

    return by_person(
        person=person, run_id=run_id, right=Right.REVISE_GOALS, action=LIMIT, submission=submission,
        events_of=events_of,
    )  # fmt: skip


def confirm_constraint(*, person: User, run_id: str, number: int, note: str, submission: UUID) -> Done:
    """Stand for a constraint that the run's agent inferred. Its source stays shown.

    Raises LookupError, Refused; access.RunNotFound, access.NotPermitted.
    """
    return by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action=CONFIRM, submission=submission,
        events_of=lambda state, now: decide.confirmed(state, number, note=plain(note)),
    )  # fmt: skip
