"""Constraints that come, go or change after the start: what they end, where the run stops, and how it goes on."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical, digest
from runs.machine.constraints import Became, SourceNow, term_digest
from runs.machine.safety import decisions_of
from runs.machine.transitions import Decision, Refused
from tests.machine.lives import LIVES, Life, approved, compensating, executing, planning, unknown, waiting

KIM = e.Actor(e.ActorKind.PERSON, "p-kim", "Kim")
NEW = e.Term(
    text="Pay open orders of today.", source_kind="configuration", source_ref="x", source_version="2",
    predicate="cost < 5.0",
)  # fmt: skip
GONE = {1: SourceNow(became=Became.WITHDRAWN, why="too narrow", by=KIM)}
OTHER = {1: SourceNow(became=Became.AMENDED, term=NEW, why="too wide", by=KIM)}


def codes(life: Life) -> list[str]:
    return [r.code for r in life.state.reasons]


def test_the_digest_of_constraints_without_name_and_predicate_is_as_it_always_was() -> None:
    state = planning().state
    fields = ("text", "source_kind", "source_ref", "source_version")
    term = {name: getattr(state.constraints[0].term, name) for name in fields}
    assert decide.constraints_digest(state) == digest("constraints", canonical([[1, term]]))
    named = msgspec.structs.replace(state.constraints[0], term=NEW)
    said = canonical([[1, {name: getattr(NEW, name) for name in (*fields, "predicate")}]])
    changed = msgspec.structs.replace(state, constraints=(named,))
    assert decide.constraints_digest(changed) == digest("constraints", said)


STOPPED: dict[str, Callable[[], Life]] = {
    "planning": planning, "waiting": waiting, "approved": approved, "executing": executing,
}  # fmt: skip


@pytest.mark.parametrize("begin", STOPPED.values(), ids=list(STOPPED))
@pytest.mark.parametrize(("now", "code"), [(GONE, "constraint_withdrawn"), (OTHER, "constraint_amended")])
def test_a_run_that_is_told_stops_and_what_was_made_under_it_ends(
    begin: Callable[[], Life], now: dict[int, SourceNow], code: str
) -> None:
    life = begin()
    had_plan = life.state.plan is not None
    life.take(*decide.marked(life.state, now))

    state = life.state
    assert (state.state, state.before, codes(life)) == (s.State.NEEDS_HUMAN, s.State.PLANNING, [code])
    assert not had_plan or (state.plan and state.plan.voided and state.plan.voided[0].what == "constraints")
    assert state.request is None or state.request.status is s.RequestStatus.VOIDED
    assert decide.marked(state, now) == ()
    accepts = [Decision.ACCEPT] if code == "constraint_amended" else []
    assert list(decisions_of(state)) == [*accepts, Decision.RESTART, Decision.CANCEL]


def test_the_voided_approval_says_from_which_digest_to_which() -> None:
    life = approved()
    before = decide.constraints_digest(life.state)
    life.take(*decide.marked(life.state, GONE))
    causes = {c.what: (c.was, c.now) for c in life.state.requests[0].causes}
    assert causes["constraints"] == ("Pay only open orders.", "")
    assert causes["constraints_digest"] == (before, decide.constraints_digest(life.state))


def test_what_is_open_is_settled_before_the_run_stops() -> None:
    life = unknown()
    told = decide.marked(life.state, GONE)
    assert [type(x) for x in told] == [e.ConstraintWithdrawn]
    life.take(*told)
    assert (life.state.state, life.state.outdated) == (s.State.UNKNOWN, True)
    assert life.state.plan and life.state.plan.voided_seq is None
    life.take(e.EffectReconciled(effect=1, happened=False, asked=0, reference="", note=""))
    assert life.state.state is s.State.EXECUTING
    with pytest.raises(Refused):
        decide.begin_wait(life.state, now=life.at)
    state = life.take(*decide.leave_outdated(life.state)).state
    assert state.state is s.State.PLANNING
    life.take(*decide.stopped(state))
    assert codes(life) == ["constraint_withdrawn"]


def test_what_is_undone_goes_on() -> None:
    life = compensating()
    before = life.state
    life.take(*decide.marked(life.state, GONE))
    assert life.state.constraints[0].withdrawn
    assert (life.state.state, life.state.plan, life.state.requests) == (
        before.state,
        before.plan,
        before.requests,
    )


def test_an_accepted_amendment_takes_the_place_and_another_plan_follows() -> None:
    life = approved().take(*decide.marked(approved().state, OTHER))
    with pytest.raises(decide.AmendmentMoved):
        decide.amendment_accepted(
            life.state, 1, seen=term_digest(life.state.constraints[0].term), reason="fine"
        )

    life.take(*decide.amendment_accepted(life.state, 1, seen=term_digest(NEW), reason="fine"))

    (held,) = life.state.constraints
    assert (held.term, held.amended, held.seq) == (NEW, None, life.state.seq)
    assert held.before and held.before.text == "Pay only open orders."
    assert (life.state.state, life.state.reasons) == (s.State.PLANNING, ())
    with pytest.raises(Refused):
        decide.amendment_accepted(life.state, 1, seen=term_digest(NEW), reason="fine")


def test_the_next_amendment_keeps_the_run_stopped() -> None:
    life = planning()
    life.take(*decide.accept(life.state, NEW, reason="one more"))
    other = msgspec.structs.replace(NEW, text="Pay nothing at night.", source_version="3")
    both = {1: OTHER[1], 2: SourceNow(became=Became.AMENDED, term=other)}
    life.take(*decide.marked(life.state, both))
    assert [(r.code, r.subject) for r in life.state.reasons] == [("constraint_amended", "C-1")]
    life.take(*decide.amendment_accepted(life.state, 1, seen=term_digest(NEW), reason="fine"))
    assert [(r.code, r.subject) for r in life.state.reasons] == [("constraint_amended", "C-2")]
    assert life.state.state is s.State.NEEDS_HUMAN
    state = life.take(*decide.amendment_accepted(life.state, 2, seen=term_digest(other), reason="fine")).state
    assert (state.state, state.reasons) == (s.State.PLANNING, ())


def test_one_that_is_withdrawn_for_this_run_alone_is_said_to_be_so() -> None:
    life = approved()
    life.take(*decide.withdrawn_here(life.state, 1, why="not for this one", by=KIM))
    gone = life.state.constraints[0].withdrawn
    assert gone and (gone.here, gone.by, gone.why) == (True, KIM, "not for this one")
    assert codes(life) == ["constraint_withdrawn"]
    with pytest.raises(Refused):
        decide.withdrawn_here(life.state, 1, why="again", by=KIM)
    with pytest.raises(LookupError):
        decide.withdrawn_here(life.state, 7, why="none", by=KIM)


def test_another_constraint_ends_the_plan_and_the_run_plans_on() -> None:
    life = approved()
    life.take(*decide.accept(life.state, NEW, reason="one more"))
    state = life.state
    assert (state.state, [c.number for c in state.constraints]) == (s.State.PLANNING, [1, 2])
    assert state.plan and [(c.what, c.subject, c.was) for c in state.plan.voided][:1] == [
        ("constraints", "C-2", "")
    ]
    assert state.request and state.request.status is s.RequestStatus.VOIDED
    assert state.replans == 0


@pytest.mark.parametrize("state", sorted(s.TERMINAL))
def test_a_run_that_is_over_is_told_nothing(state: s.State) -> None:
    life = LIVES[state]()
    assert decide.marked(life.state, GONE) == ()
    with pytest.raises(Refused):
        decide.accept(life.state, NEW, reason="one more")
