"""What all decisions share: the type of their result, and the ways a run stops."""

from __future__ import annotations

from datetime import datetime

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.back_off import back_off
from runs.machine.transitions import Refused

Events = tuple[e.Event, ...]
FAILURES_BEFORE_HUMAN = 5
READS_IN_A_ROW = 100
REPLANS_IN_A_ROW = 3


def attempt_failed(state: s.RunState, *, what: str, detail: str, reason: str, now: datetime) -> Events:
    """Something without effect did not work: again after a back-off, a few times, then a person."""
    if state.failures + 1 >= FAILURES_BEFORE_HUMAN:
        return (e.HumanNeeded(reasons=(e.Reason(code=reason, subject=what, evidence=detail),)),)
    return (e.AttemptFailed(what=what, detail=detail, retry_at=now + back_off(state.failures)),)


def human(code: str, *, subject: str = "", evidence: str = "") -> Events:
    """The run stops for a person."""
    return (e.HumanNeeded(reasons=(e.Reason(code=code, subject=subject, evidence=evidence),)),)


def history(state: s.RunState, *, was: str, now: str) -> Events:
    """The database's history under this claim, against that of the last one; nothing where it is the same."""
    return (e.HistoryChanged(was=was, now=now),) if was and was != now else ()


def finished(state: s.RunState) -> Events:
    """Every step is done: the run succeeds, unless something that it promised is still open, or more is to come."""
    if state.remaining or state.open_effects or state.plan is None:
        raise Refused(state.state, "RunSucceeded")
    if state.plan.plan.more:
        return (e.PlanCarriedOut(version=state.plan.version),)
    if state.open_obligations:
        return human("obligation_open", evidence="; ".join(o.text for o in state.open_obligations))
    return (e.RunSucceeded(),)
