"""Whether a version takes a run over: what it says, and what the run planned and did, one obstacle at a time."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from runs.agents import Agent
from runs.compatibility import Obstacle, obstacles
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.versions import recorded, tool_digest
from tests import heirs
from tests.machine.lives import (
    LIVES,
    REST,
    Life,
    approved,
    executing,
    in_flight,
    planning,
    receipt,
    send,
    step,
    unknown,
    wait_step,
    waiting,
)
from tests.outside import PAYER, Pay, Tell


def codes(life: Life, agent: Agent) -> list[str]:
    return [found.code for found in obstacles(life.state, agent)]


def stopped() -> Life:
    """Approved, then nobody served it."""
    return approved().take(*decide.human("version_unavailable"))


def paid() -> Life:
    """Its payment is confirmed, something else is to do, and it stopped."""
    life = executing(step(rests_on=(REST,)), step("pay:8", "tell:7", tool="tell", system="mail"))
    life.take(*send(life))
    return life.take(*receipt(life)).take(*decide.human("version_unavailable"))


def test_a_version_that_does_the_same_takes_it_over() -> None:
    for life in (stopped(), paid(), waiting()):
        assert codes(life, heirs.SAME) == []


EXPECTED = {
    "says nothing": (heirs.STRANGER, ["not_taken_over"]),
    "other operation ids": (heirs.OTHER_IDS, ["operation_id"]),
    "other system": (heirs.ELSEWHERE, ["system"]),
    "wants more": (heirs.DEMANDING, ["arguments"]),
    "fails": (heirs.FAULTY, ["arguments"]),
    "lacks the tool": (heirs.WITHOUT_PAY, ["tool_missing"]),
    "cannot read": (heirs.BLIND_TO_ORDERS, ["tool_missing"]),
    "another declaration": (heirs.CHANGED, []),
    "another policy": (heirs.OTHER_POLICY, []),
}


@pytest.mark.parametrize(("agent", "expected"), EXPECTED.values(), ids=list(EXPECTED))
def test_what_keeps_a_version_from_a_plan(agent: Agent, expected: list[str]) -> None:
    assert codes(stopped(), agent) == expected


@pytest.mark.parametrize(("agent", "expected"), EXPECTED.values(), ids=list(EXPECTED))
def test_what_was_done_counts_where_its_plan_is_over(agent: Agent, expected: list[str]) -> None:
    life = paid().take(e.ReplanOrdered(note="")).take(*decide.human("version_unavailable"))
    plan_only = expected if agent is not heirs.BLIND_TO_ORDERS else []
    assert codes(life, agent) == plan_only


def test_an_argument_with_a_default_is_harmless_until_something_was_done() -> None:
    assert codes(stopped(), heirs.NOTED) == []
    assert codes(paid(), heirs.NOTED) == ["meaning"]


def test_a_plan_that_ended_binds_nobody() -> None:
    life = waiting()
    life.take(e.PlanVoided(version=1, causes=())).take(*decide.human("version_unavailable"))
    assert codes(life, heirs.OTHER_IDS) == []


def test_what_an_earlier_run_of_the_lineage_did_counts() -> None:
    done = paid().state
    state = msgspec.structs.replace(
        planning().state, inherited=decide.standing(done), state=s.State.NEEDS_HUMAN
    )
    assert [found.code for found in obstacles(state, heirs.OTHER_IDS)] == ["operation_id"]
    assert obstacles(state, heirs.SAME) == ()
    assert obstacles(state, heirs.WITHOUT_PAY) == ()  # that run may be one of another agent


def test_a_step_that_waits_needs_no_tool() -> None:
    life = waiting(1, step(rests_on=(REST,)), wait_step())
    assert codes(life, heirs.SAME) == []


def test_what_was_undone_binds_nobody() -> None:
    life = paid().take(e.ReplanOrdered(note="")).take(*decide.human("version_unavailable"))
    undone = msgspec.structs.replace(life.state.effects[1], status=s.EffectStatus.COMPENSATED)
    state = msgspec.structs.replace(life.state, effects={1: undone})
    assert obstacles(state, heirs.OTHER_IDS) == ()


def test_the_round_is_no_part_of_what_a_tool_calls_it() -> None:
    life = stopped()
    effect = in_flight().effect
    again = msgspec.structs.replace(effect, operation_id="pay:7#1", round=1, status=s.EffectStatus.CONFIRMED)
    state = msgspec.structs.replace(life.state, effects={1: again})
    assert obstacles(state, heirs.SAME) == ()
    odd = msgspec.structs.replace(again, operation_id="pay:7#x")
    assert [o.code for o in obstacles(msgspec.structs.replace(state, effects={1: odd}), heirs.SAME)] == [
        "operation_id"
    ]


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (s.State.PLANNING, "working"), (s.State.APPROVED, "working"), (s.State.EXECUTING, "working"),
        (s.State.WAITING, "working"), (s.State.UNKNOWN, "open_effects"), (s.State.CANCELLING, "cancel"),
        (s.State.SUCCEEDED, "over"), (s.State.CANCELLED, "over"), (s.State.RESTARTED, "over"),
        (s.State.WAITING_APPROVAL, ""), (s.State.NEEDS_HUMAN, ""),
    ],
)  # fmt: skip
def test_only_a_run_that_waits_is_taken_over(state: s.State, code: str) -> None:
    assert decide.cannot_move(LIVES[state]().state) == code


def test_never_with_an_effect_open() -> None:
    assert "open_effects" in codes(in_flight().take(*decide.human("version_unavailable")), heirs.SAME)
    assert "open_effects" in codes(unknown().take(*decide.human("effect_unknown")), heirs.SAME)


def test_its_own_version_takes_it_over_once_its_code_changed() -> None:
    life = stopped()
    assert codes(life, PAYER) == ["same_code"]  # nothing was recorded
    bound = msgspec.structs.replace(life.state.identity, code=recorded(PAYER))
    state = msgspec.structs.replace(life.state, identity=bound)
    assert obstacles(state, PAYER) == (Obstacle(code="same_code", subject="1"),)
    assert obstacles(state, replace(PAYER, tools=heirs.CHANGED.tools)) == ()


def test_the_digest_of_a_tool_is_of_what_it_promises() -> None:
    class Again(Pay):
        """Another class, and the same promises."""

    digests = {tool_digest(tool) for tool in (Pay(), Again())}
    assert len(digests) == 1
    others = (heirs.PatientPay(), heirs.ElsewherePay(), heirs.NotedPay(), Tell())
    assert len(digests | {tool_digest(tool) for tool in others}) == 1 + len(others)


def test_a_declaration_that_is_new_and_has_its_default_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from runs.tools import WritingTool

    before = tool_digest(Pay())
    monkeypatch.setattr(WritingTool, "novel", False, raising=False)
    monkeypatch.setitem(WritingTool.__annotations__, "novel", "ClassVar[bool]")
    assert tool_digest(Pay()) == before
    monkeypatch.setattr(Pay, "novel", True, raising=False)
    assert tool_digest(Pay()) != before
