"""A person gives a run another goal; what a successor takes over of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from accounts.models import User
from accounts.rights import Right
from approvals.models import LEAST_REASON
from runs.actions.frame import Done, by_person
from runs.limits import LONGEST_GOAL, LONGEST_TEXT
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import plain

REVISE = "revise goal"


class GoalRefused(ValueError):
    """The text or the reason cannot be recorded; nothing changed. `field` is text or reason, `problem` a code:
    `empty`, `short`, `long`.
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field, self.problem = field, problem
        super().__init__(f"{field}: {problem}")


class ImpactMoved(Exception):
    """The revision would do something else than the person was shown. Nothing changed. `now` is what it would do."""

    def __init__(self, now: decide.GoalImpact) -> None:
        self.now = now
        super().__init__("the impact of the revision is another one")


def revise_goal(
    *, person: User, run_id: str, text: str, reason: str, expected: int, impact: str, submission: UUID
) -> Done:
    """Commit another goal in place of version `expected`, where that does what the person was shown: `impact` is the
    digest of `decide.goal_impact`.

    From the commit nothing is sent for the goal before. Raises GoalRefused, decide.GoalMoved, decide.GoalUnchanged,
    ImpactMoved; Refused where the run has ended or is ending; access.RunNotFound, access.NotPermitted.
    """

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        refuse_words(text, reason)
        events = decide.revised(state, text=plain(text), reason=plain(reason), expected=expected)
        now_does = decide.goal_impact(state)
        if now_does.digest != impact:
            raise ImpactMoved(now_does)
        return events

    return by_person(
        person=person, run_id=run_id, right=Right.REVISE_GOALS, action=REVISE, submission=submission,
        events_of=events_of,
    )  # fmt: skip


def refuse_words(text: str, reason: str) -> None:
    """Raise GoalRefused where the words say too little, or more than the next person reads."""
    if not text.strip():
        raise GoalRefused("text", "empty")
    if len(text) > LONGEST_GOAL:
        raise GoalRefused("text", "long")
    if len(reason.strip()) < LEAST_REASON:
        raise GoalRefused("reason", "short")
    if len(reason) > LONGEST_TEXT:
        raise GoalRefused("reason", "long")


def taken(closed: s.RunState) -> e.GoalTaken | None:
    """Who wrote the goal that the run's successor begins with, where it is not the original of the lineage."""
    goal = closed.goal
    if goal.version == 1:
        return goal.taken
    return e.GoalTaken(
        run=closed.identity.run, version=goal.version, author=goal.author, at=goal.at, reason=goal.reason
    )
