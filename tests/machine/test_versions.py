"""What code a run is bound to: recorded, compared part by part, and changed by a person's move only."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.evolve import evolve
from runs.machine.revalidate import report
from runs.machine.transitions import Refused
from tests.machine.lives import (
    LIVES,
    OPERATOR,
    Life,
    approved,
    executing,
    facts,
    in_flight,
    planning,
    stopped,
    unknown,
    waiting,
)

PARTS = {"tool:pay": "p", "tool:look_up": "l", "policy": "1", "prompt": "one", "reducer": "1"}


def bound(life: Life, code: dict[str, str] = PARTS) -> Life:
    """The same life, its code recorded."""
    life.now = msgspec.structs.replace(
        life.state, identity=msgspec.structs.replace(life.state.identity, code=code)
    )
    return life


def codes(life: Life, **parts: str) -> list[tuple[str, bool]]:
    made = report(life.state, facts(parts={**PARTS, **parts}), life.at)
    return [(check.subject, check.passed) for check in made if check.name == "code"]


def moved(life: Life, **parts: str) -> s.RunState:
    events = decide.moved(life.state, to="2", code={**PARTS, **parts}, note="1 is gone")
    return life.take(*events, by=OPERATOR).state


def test_each_recorded_part_is_compared_but_the_policy_which_has_its_own_check() -> None:
    parts = ["payer", "tool:pay", "tool:look_up", "prompt", "reducer"]
    assert codes(bound(approved())) == [(part, True) for part in parts]
    assert dict(codes(bound(approved()), prompt="two"))["prompt"] is False


def test_a_log_without_the_record_says_so_and_passes() -> None:
    assert codes(approved()) == [("payer", True), ("parts", True)]


def test_a_tool_that_is_new_binds_nobody() -> None:
    assert all(passed for _, passed in codes(bound(approved()), **{"tool:new": "n"}))


@pytest.mark.parametrize("part", ["tool:pay", "prompt", "reducer"])
def test_another_part_is_a_persons_with_what_it_was_and_is(part: str) -> None:
    life = bound(approved())
    known = facts(parts={**PARTS, part: "other"})
    *_, stop = decide.revalidated(life.state, known, requirement=None, request="r", now=life.at)
    assert isinstance(stop, e.HumanNeeded)
    (reason,) = stop.reasons
    assert (reason.code, reason.subject) == ("version_unavailable", part)
    assert reason.evidence == f"{part}: {PARTS[part]} -> other"


def test_another_policy_is_another_plan_and_no_second_stop() -> None:
    life = bound(approved())
    known = facts(parts={**PARTS, "policy": "2"}, policy_version="2")
    _refused, voided = decide.revalidated(life.state, known, requirement=None, request="r", now=life.at)
    assert isinstance(voided, e.PlanVoided)
    assert [c.what for c in voided.causes] == ["policy"]


def test_a_planning_run_stops_before_other_code_plans_for_it() -> None:
    life = bound(planning())
    assert decide.other_parts(life.state, PARTS) == ()
    (stop,) = decide.other_parts(life.state, {**PARTS, "prompt": "two"})
    assert isinstance(stop, e.HumanNeeded)
    assert decide.other_parts(planning().state, PARTS) == ()


def unserved(life: Life) -> Life:
    return life.take(*decide.unserved(life.state, agent="payer", version="1"))


@pytest.mark.parametrize("make", [planning, approved, executing])
def test_a_run_that_nobody_served_returns_to_where_it_was(make: Any) -> None:
    life = bound(make())
    before = life.state.state
    state = moved(unserved(life))
    assert (state.state, state.reasons, state.before) == (before, (), None)
    assert (state.identity.agent_version, state.identity.code) == ("2", PARTS)
    assert state.returned_seq == state.seq


def test_what_was_approved_stands_where_tools_and_policy_are_the_same() -> None:
    state = moved(unserved(bound(approved())), prompt="two")
    assert state.request is not None and state.plan is not None
    assert (state.request.status, state.plan.voided) == (s.RequestStatus.VALID, ())


@pytest.mark.parametrize("make", [waiting, lambda: unserved(approved())], ids=["waiting", "approved"])
@pytest.mark.parametrize(("part", "was"), [("tool:pay", "p"), ("tool:look_up", "l"), ("policy", "1")])
def test_no_approval_survives_other_tools_or_another_policy(make: Any, part: str, was: str) -> None:
    state = moved(bound(make()), **{part: "other"})
    cause = e.Cause(what="code", subject=part, was=was, now="other")
    assert state.request is not None and state.plan is not None
    assert (state.state, state.request.status) == (s.State.PLANNING, s.RequestStatus.VOIDED)
    assert state.request.causes == state.plan.voided == (cause,)
    assert state.replans == 0


def test_a_tool_that_the_plan_does_not_use_ends_nothing() -> None:
    assert moved(bound(waiting()), **{"tool:tell": "new"}).state is s.State.WAITING_APPROVAL


def test_where_nothing_was_recorded_the_plan_ends() -> None:
    assert moved(waiting()).state is s.State.PLANNING


def test_other_reasons_stay_and_the_plan_that_ended_is_not_gone_back_to() -> None:
    life = bound(stopped("tool_failed"))
    state = moved(life, **{"tool:pay": "other"})
    assert (state.state, [r.code for r in state.reasons]) == (s.State.NEEDS_HUMAN, ["tool_failed"])
    assert state.before is s.State.PLANNING
    assert state.plan is not None and state.plan.voided

    both = bound(stopped("tool_failed")).take(*decide.human("version_unavailable"))
    assert [r.code for r in moved(both).reasons] == ["tool_failed"]


@pytest.mark.parametrize(
    "state", [x for x in s.State if x not in (s.State.WAITING_APPROVAL, s.State.NEEDS_HUMAN)]
)
def test_nothing_else_is_moved(state: s.State) -> None:
    with pytest.raises(Refused):
        decide.moved(LIVES[state]().state, to="2", code=PARTS, note="")


@pytest.mark.parametrize("make", [in_flight, unknown])
def test_nothing_is_moved_with_an_effect_open(make: Any) -> None:
    life = make().take(*decide.human("version_unavailable"))
    with pytest.raises(Refused):
        decide.moved(life.state, to="2", code=PARTS, note="")


def test_an_event_from_before_the_record_reads_as_without() -> None:
    started = planning().log[0].event
    body = msgspec.json.decode(e.encode(started))
    del body["code"]
    read = e.decode(seq=1, type_="RunStarted", version=1, body=msgspec.json.encode(body).decode())
    assert read == started
    assert evolve(None, e.Recorded(1, planning().at, OPERATOR, read)).identity.code == {}
