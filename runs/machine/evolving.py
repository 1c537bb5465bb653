"""What waits, signals, child runs and compensation do to the parts of a state. Registered by `evolve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.constraining import CONSTRAINTS
from runs.machine.transitions import ANSWERED_BY_GOAL
from runs.machine.waits import Child, Signal, Wait, WaitKind, work_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from runs.machine.draft import Draft


#: The cause with which a revised goal ends a plan, as the check of that name does.
GOAL: Final = "goal"


def first_goal(event: e.RunStarted, recorded: e.Recorded) -> s.Goal:
    """The original; that of a successor may be a revision, which has its own author."""
    taken = event.goal_taken
    if taken is None:
        return s.Goal(version=1, text=event.goal, author=recorded.actor, at=recorded.at, reason="")
    return s.Goal(
        version=1, text=event.goal, author=taken.author, at=taken.at, reason=taken.reason, taken=taken
    )


def goal_revised(draft: Draft, event: e.GoalRevised, recorded: e.Recorded) -> tuple[e.Cause, ...]:
    """The goal from now on, with which the planner begins anew; the cause that ends what was made for the last one."""
    was = draft.goals[-1].version
    draft.goals += (
        s.Goal(
            version=event.version, text=event.text, author=recorded.actor, at=recorded.at, reason=event.reason
        ),
    )
    draft.reasons = tuple(r for r in draft.reasons if r.code not in ANSWERED_BY_GOAL)
    draft.retry_at, draft.failures, draft.replans, draft.reads, draft.blocked = None, 0, 0, 0, None
    return (e.Cause(what=GOAL, subject="", was=str(was), now=str(event.version)),)


def of_contract(causes: tuple[e.Cause, ...]) -> bool:
    """Whether it was another goal or constraint that ended a plan, and not the world."""
    return any(cause.what in (GOAL, CONSTRAINTS) for cause in causes)


def may_replan(draft: Draft) -> bool:
    """Whether a plan can end here: one is in force, and nothing that it began is open."""
    if not draft.plans or draft.plans[-1].voided_seq is not None:
        return False
    if (draft.before or draft.state) is s.State.PLANNING:
        return False  # it was carried out
    doubt = any(x.status in s.OPEN_EFFECT for x in draft.effects.values())
    return not doubt and not any(child.open for child in draft.children.values())


#: Reasons that lending anew answers.
CURED = frozenset({"authority_lost", "budget_exhausted"})


def authority_lent(draft: Draft, event: e.AuthorityLent, recorded: e.Recorded) -> None:
    """Another grant carries the run from here on; what was missing is there."""
    draft.lendings += (s.Lending(lent=event.lent, seq=recorded.seq, at=recorded.at),)
    draft.reasons = tuple(r for r in draft.reasons if r.code not in CURED)
    draft.retry_at, draft.failures, draft.replans = None, 0, 0
    if event.budget is not None:
        draft.identity = replace(draft.identity, budget=event.budget)


def checks_made(draft: Draft, event: e.ChecksMade, recorded: e.Recorded) -> None:
    """The report stays beside the latest one that something followed from."""
    passed = all(check.passed for check in event.checks)
    draft.checked = s.Revalidation(seq=recorded.seq, at=recorded.at, passed=passed, checks=event.checks)


def wait_began(draft: Draft, event: e.WaitBegan, recorded: e.Recorded) -> None:
    """The row of the wait."""
    draft.waits[event.step] = Wait(
        step=event.step, kind=WaitKind(event.kind), digest=event.digest, began_seq=recorded.seq,
        began_at=recorded.at, signal=event.signal, length=event.length, until=event.until,
    )  # fmt: skip


def wait_ended(draft: Draft, event: e.WaitEnded, recorded: e.Recorded) -> None:
    """The step is done. An answer ends one wait only."""
    known = draft.waits[event.step]
    if known.ended_seq is None:
        draft.waits[event.step] = replace(known, ended_seq=recorded.seq)
    if event.signal:
        draft.signals = tuple(
            replace(x, taken_by=event.step) if x.id == event.signal else x for x in draft.signals
        )
    draft.done[event.step] = 0


def wait_prolonged(draft: Draft, recorded: e.Recorded) -> None:
    """A person lets the run wait on: its time begins anew."""
    for step, wait in draft.waits.items():
        if wait.ended_seq is None and wait.kind is WaitKind.SIGNAL and wait.length is not None:
            draft.waits[step] = replace(wait, until=recorded.at + wait.length)


def signal_received(draft: Draft, event: e.SignalReceived, recorded: e.Recorded) -> None:
    """The answer is kept, whether or not anything waits for it yet."""
    draft.signals += (
        Signal(
            id=event.id, name=event.name, payload=e.text_of(event.payload), seq=recorded.seq, at=recorded.at,
            by=recorded.actor,
        ),
    )  # fmt: skip


def signals_kept(event: e.RunStarted, recorded: e.Recorded) -> tuple[Signal, ...]:
    """The answers that came to the run before this one."""
    return tuple(
        Signal(id=x.id, name=x.name, payload=e.text_of(x.payload), seq=recorded.seq, at=x.at, by=x.by)
        for x in event.signals
    )


def child_started(draft: Draft, event: e.ChildStarted, recorded: e.Recorded) -> None:
    """The run was made in the same transaction."""
    draft.children[event.run] = Child(
        run=event.run, step=event.step, name=event.name, agent=event.agent, goal=event.goal, budget=event.budget,
        seq=recorded.seq, work=work_of(event.agent, event.goal, e.text_of(event.input)),
    )  # fmt: skip


def _first_id(draft: Draft, run: str) -> str:
    return next(first for first, child in draft.children.items() if child.run == run)


def child_replaced(draft: Draft, event: e.ChildReplaced, recorded: e.Recorded) -> None:
    """From here on the successor is the child."""
    first = _first_id(draft, event.run)
    draft.children[first] = replace(draft.children[first], run=event.successor)


def child_ended(draft: Draft, event: e.ChildEnded, recorded: e.Recorded) -> None:
    """What it did stands in this run too: it is answered from, and undone with the rest."""
    first = _first_id(draft, event.run)
    draft.children[first] = replace(
        draft.children[first], ended=event.ended, ended_seq=recorded.seq, spent=event.spent
    )
    known = {(x.run, x.effect) for x in draft.inherited}
    new = (x for x in event.standing if (x.run, x.effect) not in known)
    draft.inherited += tuple(replace(x, seq=recorded.seq) for x in new)
    draft.keys |= event.keys
    for operation, round_ in event.rounds.items():
        draft.rounds[operation] = max(round_, draft.rounds.get(operation, 0))


def compensated(draft: Draft, event: e.EffectCompensated, recorded: e.Recorded) -> None:
    """Another run undid it, or did not after all."""
    by = None if event.stands else s.Undoes(run=event.by_run, effect=event.by_effect)
    status = s.EffectStatus.CONFIRMED if event.stands else s.EffectStatus.COMPENSATED
    draft.effects[event.effect] = replace(draft.effects[event.effect], status=status, compensated_by=by)


def undone(draft: Draft, by: s.Effect) -> None:
    """A confirmed effect undid another one: that one stands no more, here or in the run it belongs to."""
    target = by.undoes
    if target is None:
        return
    if target.run == draft.identity.run:
        draft.effects[target.effect] = replace(
            draft.effects[target.effect], status=s.EffectStatus.COMPENSATED,
            compensated_by=s.Undoes(run=target.run, effect=by.number),
        )  # fmt: skip
        return
    gone = tuple(x for x in draft.inherited if (x.run, x.effect) == (target.run, target.effect))
    draft.undone += gone
    draft.inherited = tuple(x for x in draft.inherited if x not in gone)


def stands_again(draft: Draft, by: s.Effect) -> None:
    """People found that an effect which undid another did not happen: that one stands, as before."""
    target = by.undoes
    if target is None:
        return
    if target.run != draft.identity.run:
        back = tuple(x for x in draft.undone if (x.run, x.effect) == (target.run, target.effect))
        draft.undone = tuple(x for x in draft.undone if x not in back)
        draft.inherited += back
        return
    undone_one = draft.effects[target.effect]
    if undone_one.compensated_by == s.Undoes(run=target.run, effect=by.number):
        draft.effects[target.effect] = replace(
            undone_one, status=s.EffectStatus.CONFIRMED, compensated_by=None
        )


def carried_out(draft: Draft, event: e.PlanCarriedOut, recorded: e.Recorded) -> None:
    """The planner begins anew, without failures of before."""
    draft.retry_at, draft.failures, draft.reads = None, 0, 0


HANDLERS: dict[type[e.Event], Callable[[Draft, Any, e.Recorded], None]] = {
    e.AuthorityLent: authority_lent,
    e.ChecksMade: checks_made,
    e.WaitBegan: wait_began,
    e.WaitEnded: wait_ended,
    e.SignalReceived: signal_received,
    e.ChildStarted: child_started,
    e.ChildReplaced: child_replaced,
    e.ChildEnded: child_ended,
    e.EffectCompensated: compensated,
}
