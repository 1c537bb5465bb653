"""The end of a run before its goal: the safe point, what is undone and in which order, and what stays."""

from __future__ import annotations

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.decide.common import Events, human
from runs.machine.decide.sends import NEW_ROUND
from runs.machine.transitions import Refused, allows


def cancel(state: s.RunState, *, note: str, undo: bool = False, owner: e.Actor | None = None) -> Events:
    """The run shall end: now where nothing is open, else as soon as that is settled. With `undo` what it did and
    can be undone is undone first. `owner` keeps what it then still owes.
    """
    if not allows(state.state, e.CancelRequested) or state.cancel_requested:
        raise Refused(state.state, "CancelRequested")
    return e.CancelRequested(note=note, undo=undo, owner=owner), *begin_cancel(state)


def begin_cancel(state: s.RunState) -> Events:
    """The safe point: nothing is in flight or unknown, and no child goes on."""
    may = allows(state.state, e.CancelBegan) and not state.undoing
    return (e.CancelBegan(),) if may and not state.open_effects and not state.open_children else ()


def finish_cancel(state: s.RunState) -> Events:
    """The run ends; what it still owes is handed to a person. Raises Refused while an effect or a child is open."""
    if state.open_effects or state.open_children:
        raise Refused(state.state, "RunCancelled")
    owed = tuple(o.number for o in state.open_obligations)
    return (e.RunCancelled(obligations=owed, owner=keeper(state) if owed else None),)


def keeper(state: s.RunState) -> e.Actor | None:
    """Who keeps what a run that is cancelled still owes: whom its canceller chose, else the canceller."""
    by = state.cancelled_by
    return state.hands_to or (by if by is not None and by.kind is e.ActorKind.PERSON else None)


def end(state: s.RunState) -> Events:
    """A person ends a run that could not undo everything. Raises Refused while something is open."""
    if not state.undoing or not allows(state.state, e.RunCancelled):
        raise Refused(state.state, "RunCancelled")
    return finish_cancel(state)


def standing(state: s.RunState) -> tuple[e.Inherited, ...]:
    """What stands in this run's lineage as far as it knows, in the order in which it came to stand."""
    own = (_own(state, x) for x in state.effects.values() if x.status is s.EffectStatus.CONFIRMED)
    return tuple(sorted((*state.inherited, *(x for x in own if x)), key=lambda x: x.seq))


def undo_more(state: s.RunState, left: tuple[e.Inherited, ...]) -> Events:
    """The plan that undoes is carried out, and more was found to stand meanwhile: another plan undoes that too."""
    if state.plan is None:
        return ()
    own = state.identity.run
    names = (f"E-{x.effect}" if x.run == own else f"{x.run} E-{x.effect}" for x in left)
    causes = tuple(e.Cause(what="stands_too", subject=name, was="", now="") for name in names)
    return (e.PlanVoided(version=state.plan.version, causes=causes),)


def disputed(state: s.RunState, plan: s.PlanDocument) -> Events:
    """What evidence says did not happen, or happened otherwise, is not undone on a guess: people settle it first."""
    own = {x.undoes.effect for x in plan.steps if x.undoes and x.undoes.run == state.identity.run}
    for effect in state.contradicted:
        if effect.number in own and effect.contradicted:
            return human(
                "effect_conflict", subject=f"E-{effect.number}", evidence=effect.contradicted.reference
            )
    return ()


def _own(state: s.RunState, effect: s.Effect) -> e.Inherited | None:
    """An effect of this run as others see it. One that undid another stands for nothing more to do."""
    if effect.undoes is not None or effect.receipt is None:
        return None
    return e.Inherited(
        run=state.identity.run, effect=effect.number, step=effect.step, tool=effect.tool, system=effect.system,
        operation_id=effect.operation_id, arguments=e.raw(effect.arguments),
        arguments_digest=effect.arguments_digest, reference=effect.receipt.reference, title=effect.title,
        round=effect.round, seq=effect.receipt.seq, sensitive=_sensitive(state, effect.tool),
    )  # fmt: skip


def _sensitive(state: s.RunState, tool: str) -> tuple[str, ...]:
    """What the run knows to be sensitive of a tool, whichever of its plans said so."""
    named = (x.sensitive for plan in state.plans for x in plan.plan.steps if x.tool == tool)
    taken = (x.sensitive for x in state.inherited if x.tool == tool)
    return tuple(sorted({path for paths in (*named, *taken) for path in paths}))


def _found_undone(effect: s.Effect) -> bool:
    """Recorded as done, until people found that it was not: its key may be used up."""
    receipt = effect.receipt
    return (
        effect.status is s.EffectStatus.NOT_EXECUTED and receipt is not None and receipt.source == "finding"
    )


def keys_to_go_on(state: s.RunState) -> dict[str, str]:
    """Operation -> key of what was sent in this lineage and did not happen, by what the outside or people said.

    A call that was itself answered "no" is over; any other may still come through where its sender was stopped. What
    was recorded as done and found not to be goes on in a new round: see `rounds_to_go_on`.
    """
    own = {
        f"{x.system} {x.operation_id}": x.key
        for x in state.effects.values()
        if x.status is s.EffectStatus.NOT_EXECUTED
        and x.receipt
        and x.receipt.source not in (*NEW_ROUND, "mark")
    }
    return {**state.keys, **own}


def rounds_to_go_on(state: s.RunState) -> dict[str, int]:
    """The rounds of a successor: what was undone, or was found not to have happened, is done in a new one."""
    rounds = dict(state.rounds)
    own = (x for x in state.effects.values() if x.status is s.EffectStatus.COMPENSATED or _found_undone(x))
    undone: tuple[s.Effect | e.Inherited, ...] = (*own, *state.undone)
    for gone in undone:
        base = gone.operation_id.removesuffix(f"#{gone.round}") if gone.round else gone.operation_id
        key = f"{gone.system} {base}"
        rounds[key] = max(rounds.get(key, 0), gone.round + 1)
    return rounds


def compensated(state: s.RunState, effect: int, *, by_run: str, by_effect: int) -> Events:
    """Another run undid an effect of this one; nothing where that is known."""
    known = state.effects.get(effect)
    if (
        known is None
        or known.status is not s.EffectStatus.CONFIRMED
        or not allows(state.state, e.EffectCompensated)
    ):
        return ()
    return (e.EffectCompensated(effect=effect, by_run=by_run, by_effect=by_effect),)


def not_compensated(state: s.RunState, effect: int, *, by_run: str, by_effect: int) -> Events:
    """People found that another run did not undo an effect of this one; nothing where it did not seem so."""
    known = state.effects.get(effect)
    if known is None or known.compensated_by != s.Undoes(run=by_run, effect=by_effect):
        return ()
    if not allows(state.state, e.EffectCompensated):
        return ()
    return (e.EffectCompensated(effect=effect, by_run=by_run, by_effect=by_effect, stands=True),)
