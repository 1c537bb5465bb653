"""Reducing: pure, repeatable, the same one event at a time or at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.machine import decide, expiry, projection
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.evolve import HANDLERS, evolve, reduce
from runs.machine.safety import Action, next_safe_action
from runs.machine.transitions import Decision, Refused
from runs.machine.waits import PlanChild, PlanWait, WaitKind
from tests.machine.lives import (
    LIVES,
    PROMISE,
    TELL,
    WORKER,
    Life,
    approved,
    executing,
    in_flight,
    observed,
    planning,
    proposed,
    receipt,
    seconds,
    send,
    step,
    stopped,
    undo_planned,
    unknown,
    wait_step,
    waiting,
)

CONFIRMED = s.EffectStatus.CONFIRMED
CHILD = PlanChild(name="one", agent="payer", version="1", goal="Pay", input="{}", budget="1")

#: What can be done with a run at any moment; those that are refused are left out.
MOVES: tuple[Callable[[Life], object], ...] = (
    lambda x: x.take(observed()),
    lambda x: x.take(*proposed(x)),
    lambda x: x.take(*proposed(x, needed=1)),
    lambda x: x.take(*send(x)),
    lambda x: x.take(*receipt(x)),
    lambda x: x.take(*receipt(x, executed=False)),
    lambda x: x.take(*decide.found_open(x.state)),
    lambda x: x.take(*decide.finished(x.state)),
    lambda x: x.take(*decide.cancel(x.state, note="")),
    lambda x: x.take(*decide.begin_cancel(x.state)),
    lambda x: x.take(*decide.finish_cancel(x.state)),
    lambda x: x.take(*decide.decided(x.state, Decision.RETRY, note="")),
    lambda x: x.take(*decide.decided(x.state, Decision.REPLAN, note="again")),
    lambda x: x.take(*decide.human("tool_failed", subject="E-1")),
    lambda x: x.take(e.RevalidationPassed(checks=())),
    lambda x: x.take(
        e.PlanApproved(request="r1", version=x.state.requests[-1].version, digest=x.state.requests[-1].digest)
    ),
    lambda x: x.after(seconds(7)),
    lambda x: x.take(*proposed(x, wait_step(), step())),
    lambda x: x.take(
        *proposed(x, wait_step(PlanWait(kind=WaitKind.SIGNAL, signal="go", length=seconds(9))), step())
    ),
    lambda x: x.take(*proposed(x, wait_step(PlanWait(kind=WaitKind.CHILDREN, children=(CHILD,))), step())),
    lambda x: x.take(*decide.begin_wait(x.state, now=x.at)),
    lambda x: x.take(*decide.wait_over(x.state, x.at)),
    lambda x: x.take(*decide.signalled(x.state, id=f"s{x.state.seq}", name="go", payload="1")),
    lambda x: x.take(e.ChildEnded(run=x.state.open_children[0].run, ended="succeeded", spent="1")),
    lambda x: x.take(e.ChildEnded(run=x.state.open_children[0].run, ended="cancelled", spent="0")),
    lambda x: x.take(*decide.cancel(x.state, note="", undo=True)),
    lambda x: x.take(*undo_planned(x)),
    lambda x: x.take(*undo_planned(x, needed=1)),
    lambda x: x.take(*decide.decided(x.state, Decision.RESUME, note="")),
    lambda x: x.take(*decide.decided(x.state, Decision.END, note="")),
    lambda x: x.take(*decide.restarted(x.state, successor="run_NEXT", note="")),
)


def lived(choices: list[int]) -> Life:
    """A life in which each chosen move was tried."""
    life = planning()
    for choice in choices:
        before = (life.now, list(life.log))
        try:
            MOVES[choice](life)
        except (Refused, LookupError):
            life.now, life.log = before
    return life


CHOICES = st.lists(st.integers(0, len(MOVES) - 1), max_size=25)


@given(CHOICES)
def test_one_by_one_and_at_once_are_the_same(choices: list[int]) -> None:
    life = lived(choices)
    assert reduce(life.log) == life.state == reduce(life.log)


@given(CHOICES)
def test_every_run_has_one_next_safe_action_and_nothing_waits_for_nothing(choices: list[int]) -> None:
    state = lived(choices).state
    action = next_safe_action(state)
    over = state.state in s.TERMINAL
    assert (action.action is Action.NONE) is (over and not state.contradicted)
    # A worker will look, or a person is named, or an answer or a child is waited for, or the run is over.
    awaited = state.wait and (state.wait.kind is WaitKind.SIGNAL or state.open_children)
    asked_elsewhere = state.cancel_requested and state.open_children
    assert over or projection.wake_at(state) is not None or action.right or awaited or asked_elsewhere


@given(CHOICES)
def test_a_child_goes_on_only_while_its_parent_waits_for_it(choices: list[int]) -> None:
    state = lived(choices).state
    if state.open_children:
        assert s.State.WAITING in (state.state, state.before)
        assert state.wait and {c.step for c in state.open_children} == {state.wait.step}


@given(CHOICES)
def test_what_was_undone_stands_no_more_and_holds_nothing(choices: list[int]) -> None:
    state = lived(choices).state
    undone = {x.undoes.effect for x in state.effects.values() if x.undoes and x.status is CONFIRMED}
    assert undone == {n for n, x in state.effects.items() if x.status is s.EffectStatus.COMPENSATED}
    assert not undone & {x.effect for x in decide.standing(state)}
    assert state.undoing or not undone


@given(CHOICES)
def test_an_open_effect_holds_the_run_open(choices: list[int]) -> None:
    state = lived(choices).state
    if state.open_effects:
        assert state.state in (*s.SENDING, s.State.UNKNOWN, s.State.NEEDS_HUMAN)
    operations = [(x.system, x.operation_id) for x in state.effects.values()]
    assert len(set(operations)) == len(operations)


@given(CHOICES)
def test_the_rows_can_be_made_of_the_state_and_reading_back_changes_nothing(choices: list[int]) -> None:
    life = lived(choices)
    before = repr(life.state)
    rows = projection.changes(None, life.state)
    msgspec.json.encode([rows, projection.run_row(life.state)])
    assert repr(life.state) == before


def test_a_state_that_was_tampered_with_does_not_change_the_next_reduction() -> None:
    log = in_flight().log
    first = reduce(log)
    first.effects.clear()  # type: ignore[attr-defined]
    first.done["pay:7"] = 9  # type: ignore[index]
    second = reduce(log)
    assert list(second.effects) == [1]
    assert second.done == {}
    assert reduce([planning().log[0]]).effects == {}


def test_an_evolved_state_leaves_the_one_before_untouched() -> None:
    life = in_flight()
    before, kept = life.state, repr(life.state)
    life.take(*receipt(life))
    assert repr(before) == kept


def test_every_event_type_has_a_handler() -> None:
    assert set(HANDLERS) == set(e.ALL)


def test_a_stop_remembers_where_the_run_was() -> None:
    life = unknown()
    assert (life.state.state, life.state.before) == (s.State.UNKNOWN, s.State.EXECUTING)
    life.take(*decide.human("effect_unknown"))
    assert (life.state.state, life.state.before) == (s.State.NEEDS_HUMAN, s.State.EXECUTING)
    life.take(*receipt(life))
    assert (life.state.state, life.state.before, life.state.reasons) == (s.State.EXECUTING, None, ())


def test_a_reason_that_is_not_settled_keeps_the_run_stopped() -> None:
    life = unknown().take(*decide.human("effect_unknown"), *decide.human("no_progress"))
    life.take(*receipt(life))
    assert life.state.state is s.State.NEEDS_HUMAN
    assert [r.code for r in life.state.reasons] == ["no_progress"]


def test_a_receipt_opens_what_the_plan_promised_and_another_discharges_it() -> None:
    life = in_flight(step(), TELL, promises=(PROMISE,))
    life.take(*receipt(life))
    assert [o.open for o in life.state.obligations] == [True]
    life.take(*send(life))
    life.take(*receipt(life))
    assert [o.open for o in life.state.obligations] == [False]


def test_a_refused_call_opens_nothing() -> None:
    life = in_flight(step(), TELL, promises=(PROMISE,))
    life.take(*receipt(life, executed=False))
    assert life.state.obligations == ()
    assert life.state.done == {}


def test_cancelling_hands_open_obligations_to_a_person() -> None:
    life = in_flight(step(), TELL, promises=(PROMISE,))
    life.take(*receipt(life))
    life.take(*decide.cancel(life.state, note=""))
    life.take(*decide.finish_cancel(life.state))
    assert [(o.open, o.handed_over) for o in life.state.obligations] == [(True, True)]


def test_cancelling_voids_the_approval() -> None:
    life = approved()
    life.take(*decide.cancel(life.state, note=""))
    assert life.state.requests[-1].status is s.RequestStatus.VOIDED
    assert [c.what for c in life.state.requests[-1].causes] == ["cancelled"]


def test_an_approval_is_used_up_by_the_run_of_its_steps() -> None:
    life = approved().take(e.RevalidationPassed(checks=()))
    life.take(*send(life))
    life.take(*receipt(life))
    life.take(*decide.finished(life.state))
    assert life.state.requests[-1].status is s.RequestStatus.CONSUMED


def test_a_second_reading_keeps_its_number() -> None:
    life = planning().take(observed("v1"), observed("v2"))
    assert [(o.number, o.version) for o in life.state.observations.values()] == [(1, "v2")]


WAKES = {
    s.State.PLANNING: True,
    s.State.WAITING_APPROVAL: True,
    s.State.APPROVED: True,
    s.State.EXECUTING: True,
    s.State.WAITING: True,
    s.State.UNKNOWN: True,
    s.State.NEEDS_HUMAN: False,
    s.State.CANCELLING: True,
    s.State.COMPENSATING: True,
    s.State.SUCCEEDED: False,
    s.State.CANCELLED: False,
    s.State.RESTARTED: False,
}


@pytest.mark.parametrize("state", s.State)
def test_a_worker_looks_again_where_a_worker_moves_the_run(state: s.State) -> None:
    assert (projection.wake_at(LIVES[state]().state) is not None) is WAKES[state]


def test_a_wait_for_approval_wakes_before_the_request_ends_and_when_it_does() -> None:
    life = waiting()
    ends = life.at + timedelta(hours=1)
    assert projection.wake_at(life.state) == ends - timedelta(minutes=15)
    life.after(timedelta(minutes=45)).take(*expiry.recorded(life.state, life.at))
    assert projection.wake_at(life.state) == ends
    assert next_safe_action(life.state).action is Action.REVIEW
    assert next_safe_action(expiry.as_of(life.state, ends)).action is Action.RENEW
    assert expiry.as_of(life.state, ends - timedelta(seconds=1)) is life.state


def test_what_asked_before_ends_were_announced_wakes_at_its_end_alone() -> None:
    """The rows of a run from an earlier release stay what its log amounts to."""
    life = waiting()
    old = msgspec.structs.replace(life.state.requests[-1], announce_at=None)
    state = msgspec.structs.replace(life.state, requests=(old,))
    assert projection.wake_at(state) == old.expires_at
    assert expiry.recorded(state, old.expires_at - timedelta(seconds=1)) == ()


def test_a_cancel_that_waited_for_an_effect_goes_on_although_other_reasons_are_left() -> None:
    life = unknown().take(*decide.human("no_progress"))
    life.take(*decide.cancel(life.state, note=""))
    assert projection.wake_at(life.state) is None
    life.take(*receipt(life))
    assert life.state.state is s.State.NEEDS_HUMAN
    assert projection.wake_at(life.state) == life.at


def test_the_time_of_a_run_is_that_of_its_last_event() -> None:
    life = stopped().after(seconds(3)).take(e.CancelRequested(note=""))
    assert (life.state.at, life.state.seq) == (life.at, len(life.log))
    assert evolve(life.state, e.Recorded(99, life.at, WORKER, e.CancelBegan())).seq == 99


def test_what_was_executed_is_not_done_again_by_a_new_plan() -> None:
    life = executing(step(), TELL)
    life.take(*send(life))
    life.take(*receipt(life))
    life.take(e.PlanVoided(version=1, causes=()))
    life.take(*proposed(life, step("renamed"), TELL), e.RevalidationPassed(checks=()))
    (event,) = send(life)
    assert isinstance(event, e.EffectAnswered)
    assert event.effect == 1
