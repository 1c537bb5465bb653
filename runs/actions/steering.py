"""What became of an effect, how a stopped run goes on, that it ends; and the one thing the system does by itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from accounts.models import User
from accounts.reauthentication import require_recent
from accounts.rights import Right
from runs import promising
from runs.actions.frame import SWEEP, Done, by_person, locked_by_system, person_actor
from runs.actions.obligations import keeper_of
from runs.actions.writing import write
from runs.ledger import load
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.safety import Answered, right_to
from runs.machine.transitions import Decision
from runs.models import CLOSED
from runs.waiting import SIGNAL_NAME


def record_answer(
    *,
    person: User,
    run_id: str,
    effect: int,
    answer: Answered,
    evidence: str,
    submission: UUID,
    kept: e.ArtifactKept | None = None,
) -> Done:
    """Store what the outside answered to a person's question about an effect. Concludes nothing.

    `kept` ties the whole of a long evidence to the run.
    """
    return by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action="ask", submission=submission,
        events_of=lambda state, now: (
            *decide.asked_by_person(state, effect, answer, evidence=evidence),
            *decide.kept(state, kept),
        ),
    )  # fmt: skip


def conclude_effect(
    *, person: User, run_id: str, effect: int, happened: bool, asked: int, note: str, submission: UUID
) -> Done:
    """Record what became of an unknown effect, from the answer in event `asked`. Raises
    decide.ConclusionRefused.
    """
    return by_person(
        person=person, run_id=run_id, right=Right.RECONCILE_EFFECTS, action="conclude", submission=submission,
        events_of=lambda state, now: decide.concluded(
            state, effect, happened=happened, asked_seq=asked, note=note, now=now,
            promises=promising.of_answer(state, effect, asked) if happened else (),
        ),
    )  # fmt: skip


def decide_run(*, person: User, run_id: str, decision: Decision, note: str, submission: UUID) -> Done:
    """Resume, retry or replan a run in `needs_human`. Raises Refused for what its reasons do not allow."""
    return by_person(
        person=person, run_id=run_id, right=Right(right_to(decision)), action=decision.value, submission=submission,
        events_of=lambda state, now: decide.decided(state, decision, note=note),
    )  # fmt: skip


def attest_effect(
    *,
    person: User,
    run_id: str,
    effect: int,
    happened: bool,
    reference: str,
    how: str,
    submission: UUID,
    signed_in_at: datetime | None = None,
) -> Done:
    """State, as a person, what became of an unknown effect. Raises decide.ConclusionRefused with what is missing.

    Where the effect cannot be undone it stays unknown until a second person states the same, and each must have
    signed in lately: else ReauthenticationNeeded.
    """

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        stated = decide.attested(
            state, effect, happened=happened, reference=reference, how=how, person=str(person.pk), now=now
        )
        if not state.effects[effect].terms.reversible:
            require_recent(signed_in_at=signed_in_at, now=now)
        return stated

    return by_person(
        person=person, run_id=run_id, right=Right.ATTEST_EFFECTS, action="attest", submission=submission,
        events_of=events_of,
    )  # fmt: skip


def cancel_run(
    *, person: User, run_id: str, note: str, submission: UUID, undo: bool = False, owner: User | None = None
) -> Done:
    """End the run and those it started: now, or as soon as what is in flight or unknown is settled. With `undo` what
    they did and can be undone is undone first, by a plan that is reviewed like any other.

    What is owed then passes to `owner`, or to the person. Raises decide.ConclusionRefused for an owner who may do
    nothing about it.
    """

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        keeper = keeper_of(state, owner) if owner and owner != person else person_actor(person)
        return decide.cancel(state, note=note, undo=undo, owner=keeper)

    return by_person(
        person=person, run_id=run_id, right=Right.CANCEL_RUNS, action="cancel undo" if undo else "cancel",
        submission=submission, events_of=events_of,
    )  # fmt: skip


def end_run(*, person: User, run_id: str, note: str, submission: UUID) -> Done:
    """End a run that could not undo everything: what stands is left. Raises Refused while something is open."""
    return by_person(
        person=person, run_id=run_id, right=Right.CANCEL_RUNS, action="end", submission=submission,
        events_of=lambda state, now: decide.decided(state, Decision.END, note=note),
    )  # fmt: skip


def signal_run(*, person: User, run_id: str, name: str, payload: str, submission: UUID) -> Done:
    """Give the run an answer, whether or not it waits for one yet. `payload` is canonical text. Raises Refused where
    the run has ended, ValueError for a name that no signal can have.
    """
    if not SIGNAL_NAME.fullmatch(name):
        raise ValueError(f"{name[:100]!r} cannot be the name of a signal")
    return by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action="signal", submission=submission,
        events_of=lambda state, now: decide.signalled(state, id=str(submission), name=name, payload=payload),
    )  # fmt: skip


def stop_unserved(*, run_id: str, version: str) -> None:
    """Hand a run to a person because no worker serves its agent's version; nothing where it moved meanwhile."""
    with transaction.atomic():
        run, now = locked_by_system(run_id)
        held = run.lease_until is not None and run.lease_until > now
        if held or run.wake_at is None or run.wake_at > now or run.state in CLOSED:
            return
        if run.agent_version != version:
            return  # it was moved to another version since the sweep looked
        state = load(run_id)
        events = decide.unserved(state, agent=run.agent.name, version=version)
        write(state, events, run=run, actor=SWEEP, now=now)
