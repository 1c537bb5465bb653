"""The pure machine beside the database: a shadow state for each run, evolved from its events one at a time.

After each step everything that PostgreSQL holds must be what the pure machine makes of the same events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from runs.ledger import load, log
from runs.machine import events as e
from runs.machine.decide import ConclusionRefused
from runs.machine.evolve import evolve
from runs.machine.safety import Action, next_safe_action
from runs.machine.state import TERMINAL, EffectStatus, RunState, State
from runs.machine.transitions import Refused
from runs.models import Claim, Run
from runs.rereduction import differences

REFUSED: Final = (Refused, ConclusionRefused)
_CHECKS: Final = (
    e.ObservationRecorded, e.ArtifactKept, e.AttemptFailed, e.RevalidationPassed, e.RevalidationRefused, e.PlanVoided,
    e.ApprovalVoided, e.CancelBegan,
)  # fmt: skip
#: What the answer stored at a claim allows a worker to do first after it. Any may find that the history changed, or
#: stop for a person.
FOLLOWS: Final[dict[Action, tuple[type[e.Event], ...]]] = {
    Action.RUN: (
        *_CHECKS, e.ProposalRefused, e.PlanProposed, e.ApprovalExpired, e.ExpiryAnnounced, e.WaitEnded, e.WaitBegan,
    ),
    Action.ASK: (e.EffectQueried,),
    Action.RESEND: (e.EffectSent,),
    # Under another policy, or another grant, than it was asked.
    Action.REVIEW: (e.ApprovalExpired, e.ExpiryAnnounced, e.CancelBegan, e.ApprovalVoided, e.PlanVoided),
    Action.SETTLE: (e.OutcomeUnknown, e.EffectUnsent),
    Action.WAIT: (e.WaitEnded, e.CancelBegan, e.ApprovalExpired, e.ExpiryAnnounced),
    Action.UNDO: _CHECKS,
    Action.FINISH_CANCEL: (e.CancelBegan, e.RunCancelled, e.PlanProposed),
}  # fmt: skip


@dataclass
class Shadow:
    """What the pure machine knows of the runs of one life."""

    states: dict[str, RunState] = field(default_factory=dict)
    actions: dict[tuple[str, int], Any] = field(default_factory=dict)
    foretold: dict[tuple[str, int], RunState] = field(default_factory=dict)
    claims: dict[str, int] = field(default_factory=dict)
    events: dict[str, list[e.Recorded]] = field(default_factory=dict)

    def appended(self, new: RunState) -> None:
        """The state that an append says it has led to; it may be rolled back yet."""
        self.foretold[new.identity.run, new.seq] = new

    def follow(self, runs: Sequence[Run]) -> bool:
        """Evolve what is new in the log of each run, and compare with all that the database holds of it; whether there
        was anything new.
        """
        moved = False
        for run in runs:
            known = self.states.get(run.pk)
            if known is None or known.seq != run.seq:
                moved = True
                self._evolve(run.pk)
                self._compare(run.pk)
            if self.claims.get(run.pk, 0) != run.lease_token:
                self._claims(run.pk)
                self.claims[run.pk] = run.lease_token
        return moved

    def _evolve(self, run: str) -> None:
        state = self.states.get(run)
        recorded = list(log(run))
        for one in recorded[state.seq if state else 0 :]:
            state = evolve(state, one)
            self.actions[run, state.seq] = _plain(next_safe_action(state))
        assert state is not None
        self.states[run], self.events[run] = state, recorded

    def _compare(self, run: str) -> None:
        state = self.states[run]
        assert load(run) == state, f"{run}: the log reduces to another state than its events one by one"
        foretold = self.foretold.get((run, state.seq))
        assert foretold is None or foretold == state, f"{run}: what was decided is not what was stored"
        differ = differences(run)
        assert not differ, f"{run}: {differ}"

    def _claims(self, run: str) -> None:
        """The next safe action stored with each claim is that of the machine, and what then happened."""
        for claim in Claim.objects.filter(run=run, token__gt=self.claims.get(run, 0)).order_by("token"):
            assert claim.answer == self.actions[run, claim.seq], f"{run}: the claim {claim.token}"
            self._happened(run, claim)

    def _happened(self, run: str, claim: Claim) -> None:
        first = next((r for r in self.events[run] if r.seq == claim.seq + 1), None)
        if first is None or first.actor.kind is not e.ActorKind.WORKER:
            return
        allowed = FOLLOWS.get(Action(claim.answer["action"]), ())
        assert isinstance(first.event, (*allowed, e.HistoryChanged, e.HumanNeeded)), (
            f"{run}: said {claim.answer['action']}, did {type(first.event).__name__} at {first.seq}"
        )

    def tried(
        self, run: str, pure: Callable[[RunState], Sequence[e.Event]], do: Callable[[], object]
    ) -> bool:
        """Do as a person; whether it was done. The pure machine and the database refuse the same, and do the same."""
        state = self.states[run]
        expected, done = _types(pure, state), True
        try:
            do()
        except REFUSED:
            done = False
        assert done == (expected is not None), f"{run}: the machine says {expected}, done is {done}"
        if expected:
            stored = [type(r.event) for r in log(run)][state.seq : state.seq + len(expected)]
            assert stored == expected
        return done


def _types(pure: Callable[[RunState], Sequence[e.Event]], state: RunState) -> list[type[e.Event]] | None:
    try:
        return [type(event) for event in pure(state)]
    except REFUSED:
        return None


def _plain(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def problems(states: dict[str, RunState], *, told: bool) -> Iterator[str]:
    """What may not be between the runs of a lineage. `told`: the sweep has told each what others did."""
    for run, state in states.items():
        yield from (f"{run}: {problem}" for problem in _alone(state))
        yield from (f"{run}: {problem}" for problem in _with_others(state, states, told))


def _alone(state: RunState) -> Iterator[str]:
    ended = state.state in TERMINAL
    if ended and (state.open_effects or state.open_children):
        yield "it is over with an effect or a child open"
    if state.state is State.WAITING and state.wait is None:
        yield "it waits for nothing"
    if state.open_children and State.WAITING not in (state.state, state.before):
        yield "children go on and it does not wait for them"
    if state.state is State.SUCCEEDED and (state.remaining or state.open_obligations):
        yield "it succeeded with something left to do"
    operations = [x.operation for x in state.effects.values() if x.status is EffectStatus.CONFIRMED]
    if len(set(operations)) != len(operations):
        yield f"an operation stands twice: {operations}"
    undone = {
        x.undoes.effect
        for x in state.effects.values()
        if x.undoes and x.undoes.run == state.identity.run and x.status is EffectStatus.CONFIRMED
    }
    said = {
        n
        for n, x in state.effects.items()
        if x.status is EffectStatus.COMPENSATED
        and x.compensated_by
        and x.compensated_by.run == state.identity.run
    }
    if undone != said:
        yield f"undone are {undone}, recorded as compensated {said}"


def _with_others(state: RunState, states: dict[str, RunState], told: bool) -> Iterator[str]:
    ended = state.state in TERMINAL
    for child in state.children.values():
        other = states[child.run]
        if other.identity.parent != state.identity.run and not other.identity.predecessor:
            yield f"its child {child.run} has another parent"
        if not child.open and child.ended != other.state.value:
            yield f"its child {child.run} is {other.state}, not {child.ended}"
        if told and child.open and other.state in TERMINAL:
            yield f"its child {child.run} ended and it was not told"
        if told and child.open and state.cancel_requested and not other.cancel_requested:
            yield f"the cancel did not reach {child.run}"
    if state.identity.parent and not ended and told:
        parent = states[state.identity.parent]
        if state.identity.run not in {c.run for c in parent.children.values()}:
            yield "its parent does not know it"
    for x in state.inherited if told and not ended else ():
        if (status := states[x.run].effects[x.effect].status) is not EffectStatus.CONFIRMED:
            yield f"it takes {x.run} E-{x.effect} for done, which is {status}"
    for number, effect in state.effects.items():
        by = effect.compensated_by
        if by and by.run != state.identity.run:
            undoing = states[by.run].effects[by.effect]
            if undoing.status is not EffectStatus.CONFIRMED or undoing.undoes is None:
                yield f"E-{number} is recorded as undone by {by.run} E-{by.effect}, which is {undoing.status}"
        target = effect.undoes
        if told and target and target.run != state.identity.run and effect.status is EffectStatus.CONFIRMED:
            status = states[target.run].effects[target.effect].status
            if status is not EffectStatus.COMPENSATED:
                yield f"it undid {target.run} E-{target.effect}, which is {status}"
