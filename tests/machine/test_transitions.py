"""The table: every state can be reached and left, evidence is always taken, what it lacks changes nothing."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.evolve import evolve
from runs.machine.transitions import (
    REASONS,
    TABLE,
    Decision,
    Move,
    Refused,
    allowed_decisions,
    allows,
    first_reason,
    states_of,
)
from tests.machine.lives import LIVES, T0, WORKER, stopped, unknown
from tests.machine.samples import SAMPLES

OPEN = [state for state in s.State if state not in s.TERMINAL]


def _reached() -> set[s.State]:
    """All states that some chain of pairs leads to, from the start of a run."""
    found: set[s.State] = set()
    to_do: list[s.State | None] = [None]
    while to_do:
        for target in itertools.chain(*map(states_of, TABLE[to_do.pop()].values())):
            if target not in found:
                found.add(target)
                to_do.append(target)
    return found


def test_every_state_can_be_reached() -> None:
    assert _reached() == set(s.State)
    assert set(TABLE) == {None, *s.State}


@pytest.mark.parametrize("state", OPEN)
def test_every_open_state_has_a_way_out_and_one_that_ends_the_run(state: s.State) -> None:
    assert any(isinstance(target, s.State) and target is not state for target in TABLE[state].values())
    assert allows(state, e.CancelRequested)


@pytest.mark.parametrize("state", sorted(s.TERMINAL))
def test_a_terminal_state_is_left_by_nothing(state: s.State) -> None:
    assert set(TABLE[state].values()) == {Move.SAME}


@pytest.mark.parametrize("state", s.State)
def test_evidence_is_taken_in_every_state(state: s.State) -> None:
    life = LIVES[state]()
    before = life.state
    life.take(SAMPLES[e.EvidenceKept])
    assert (life.state.state, life.state.effects) == (before.state, before.effects)


@pytest.mark.parametrize("state", s.State)
def test_each_life_is_in_its_state(state: s.State) -> None:
    assert LIVES[state]().state.state is state


PAIRS = [(state, event) for state, event in itertools.product(s.State, e.ALL) if not allows(state, event)]


@pytest.mark.parametrize(("state", "event"), PAIRS, ids=[f"{a}-{b.__name__}" for a, b in PAIRS])
def test_a_pair_that_the_table_lacks_is_refused_and_changes_nothing(
    state: s.State, event: type[e.Event]
) -> None:
    life = LIVES[state]()
    before = repr(life.state)
    with pytest.raises(Refused):
        evolve(life.state, e.Recorded(len(life.log) + 1, T0, WORKER, SAMPLES[event]))
    assert repr(life.state) == before


@pytest.mark.parametrize("event", [cls for cls in e.ALL if cls not in (e.RunStarted, e.RunTakenIn)])
def test_a_log_begins_with_the_start_or_a_checkpoint_only(event: type[e.Event]) -> None:
    with pytest.raises(Refused):
        evolve(None, e.Recorded(1, T0, WORKER, SAMPLES[event]))


def test_no_terminal_state_is_entered_while_an_effect_is_open() -> None:
    life = unknown()
    with pytest.raises(Refused):
        decide.finished(life.state)
    assert decide.begin_cancel(life.state) == ()


CODES = st.lists(st.sampled_from(list(REASONS)), min_size=1, max_size=6)


@given(CODES)
def test_a_person_may_decide_exactly_what_all_reasons_allow(codes: list[str]) -> None:
    reasons = tuple(e.Reason(code=code) for code in codes)
    expected = set.intersection(*(set(REASONS[code]) for code in codes))
    assert set(allowed_decisions(reasons)) == expected
    assert Decision.CANCEL in expected


@given(CODES)
def test_the_first_reason_is_the_first_in_the_order_of_the_table(codes: list[str]) -> None:
    reasons = tuple(e.Reason(code=code) for code in codes)
    assert first_reason(reasons).code == min(codes, key=list(REASONS).index)


def test_without_reasons_nothing_may_be_decided() -> None:
    assert allowed_decisions(()) == ()


@pytest.mark.parametrize("code", REASONS)
@pytest.mark.parametrize("decision", [Decision.RESUME, Decision.RETRY, Decision.REPLAN])
def test_a_decision_that_the_reason_does_not_allow_is_refused(code: str, decision: Decision) -> None:
    state = stopped(code).state
    if decision in allowed_decisions(state.reasons, open_effects=bool(state.open_effects)):
        assert decide.decided(state, decision, note="go on")
    else:
        with pytest.raises(Refused):
            decide.decided(state, decision, note="go on")


@pytest.mark.parametrize(
    ("contradicted", "open_effects", "expected"),
    [
        (False, False, {Decision.RESUME, Decision.REPLAN, Decision.CANCEL}),
        (True, False, {Decision.SETTLE, Decision.CANCEL}),
        (False, True, {Decision.RECONCILE, Decision.ATTEST, Decision.CANCEL}),
        (True, True, {Decision.RECONCILE, Decision.ATTEST, Decision.CANCEL}),
    ],
)
def test_a_conflict_offers_only_what_can_be_done(
    contradicted: bool, open_effects: bool, expected: set[Decision]
) -> None:
    reasons = (e.Reason(code="effect_conflict", subject="E-1"),)
    found = allowed_decisions(reasons, open_effects=open_effects, contradicted=contradicted)
    assert set(found) == expected
