"""The launch gates: all pass as shipped, and each fails, with id and hint, where its rule is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any, ClassVar

import pytest
from django.core.checks import CheckMessage
from django.core.management import CommandError, call_command

from runs import context, gates, planning
from runs.machine import decide, handoff, safety
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical, parse
from runs.machine.evolve import HANDLERS
from runs.machine.transitions import REASONS, TABLE
from runs.pages import timeline
from runs.tools import WritingTool
from tests.outside import PAYER, Pay, PayArguments, World

Patch = pytest.MonkeyPatch


def found(gate: Callable[[], gates.Faults]) -> tuple[set[str | None], str]:
    """The ids and texts of what a gate finds. Each fault has a hint."""
    faults = list(gate())
    assert all(fault.hint for fault in faults)
    return {fault.id for fault in faults}, " ".join(str(fault.msg) for fault in faults)


def lacks(monkeypatch: Patch, state: s.State, *events: type[e.Event]) -> None:
    """Take events from a state's row of the table."""
    row: Any = TABLE[state]
    for event in events:
        monkeypatch.delitem(row, event)


def test_all_pass_as_shipped(world: World) -> None:
    assert gates.gates(None) == []
    assert list(gates.durability({"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"})) == []


def test_the_plain_check_holds_them(world: World, monkeypatch: Patch) -> None:
    lacks(monkeypatch, s.State.CANCELLING, e.RunCancelled)
    with pytest.raises(CommandError, match=r"gates\.E006"):
        call_command("check", stdout=StringIO(), stderr=StringIO())


def test_the_tag_asks_the_database_too(world: World, live_db: object) -> None:
    """The database of the tests is made to be lost, which is just what may not be launched."""
    with pytest.raises(CommandError, match=r"gates\.E010"):
        call_command("check", tags=["gates"], stdout=StringIO(), stderr=StringIO())


def test_a_state_without_a_way_out(monkeypatch: Patch) -> None:
    lacks(
        monkeypatch,
        s.State.CANCELLING,
        e.RunCancelled,
        e.HumanNeeded,
        e.ApprovalRequested,
        e.PlanApprovedByPolicy,
    )
    ids, text = found(gates.way_out)
    assert ids == {"gates.E001"} and text == "A run in cancelling never ends."


def test_a_reason_that_nobody_can_decide_on(monkeypatch: Patch) -> None:
    monkeypatch.setitem(REASONS, "asked", ())
    ids, text = found(gates.way_out)
    assert ids == {"gates.E001"} and "asked" in text


class Nameless(WritingTool):
    """Forgets its operation ids, and what may be done when an outcome is unknown."""

    name = "nameless"
    system = "bank"
    schema = PayArguments
    reversible = True
    queryable = True


class Mute(Pay):
    """Says that it can be asked, and cannot."""

    name = "mute"
    idempotency_retention: ClassVar[timedelta | None] = None
    query = WritingTool.query


class Repeating(Pay):
    """Its ids repeat, and no key tells which record is its own."""

    name = "repeating"
    repeatable_ids: ClassVar[bool] = True
    idempotency_retention: ClassVar[timedelta | None] = None


def with_tool(monkeypatch: Patch, tool: WritingTool) -> None:
    broken = replace(PAYER, tools=(tool,))
    monkeypatch.setattr(gates, "registered", lambda: {("payer", "1"): broken})


def test_a_tool_without_operation_ids(monkeypatch: Patch) -> None:
    with_tool(monkeypatch, Nameless())
    ids, text = found(gates.operation_ids)
    assert ids == {"gates.E002"}
    assert "the tool nameless has no operation_id." in text and "has no query." in text
    assert "does not say whether it is idempotency_retention" in text


def test_a_tool_that_cannot_be_asked_though_it_says_so(monkeypatch: Patch) -> None:
    with_tool(monkeypatch, Mute())
    assert found(gates.operation_ids) == ({"gates.E002"}, "payer 1: the tool mute has no query.")


def test_a_tool_whose_ids_repeat_and_that_cannot_tell_its_own_record(monkeypatch: Patch) -> None:
    with_tool(monkeypatch, Repeating())
    ids, text = found(gates.operation_ids)
    assert ids == {"gates.E002"} and "cannot tell its own record" in text


@pytest.mark.parametrize("left_out", sorted(gates.BOUND))
def test_an_approval_that_is_not_bound_to_everything(monkeypatch: Patch, left_out: str) -> None:
    whole = decide.conditions

    def less(*args: Any) -> str:
        kept = {name: value for name, value in parse(whole(*args)).items() if name != left_out}
        return canonical(kept)

    monkeypatch.setattr(decide, "conditions", less)
    ids, text = found(gates.approvals_bind)
    assert ids == {"gates.E003"} and left_out in text


def test_a_way_around_the_checks(monkeypatch: Patch) -> None:
    around: Any = TABLE[s.State.NEEDS_HUMAN]
    monkeypatch.setitem(around, e.ReplanOrdered, s.State.EXECUTING)
    monkeypatch.setitem(around, e.EffectIntended, s.State.EXECUTING)
    ids, text = found(gates.resume_revalidates)
    assert ids == {"gates.E004"}
    assert "ReplanOrdered leads from needs_human to executing" in text and "An intent may be made in" in text


def test_a_released_version_that_nothing_reads(monkeypatch: Patch) -> None:
    versions: Any = e.VERSIONS
    monkeypatch.setitem(versions, e.EffectSent, 3)
    ids, text = found(gates.schema_versions)
    assert ids == {"gates.E005"} and "EffectSent version 1" in text and "EffectSent version 2" in text


def test_an_event_that_is_never_reduced(monkeypatch: Patch) -> None:
    handlers: Any = HANDLERS
    monkeypatch.delitem(handlers, e.EffectSent)
    assert found(gates.schema_versions) == ({"gates.E005"}, "EffectSent is written and never reduced.")


@pytest.mark.parametrize("state", [x for x in s.State if x not in s.TERMINAL])
def test_a_state_in_which_nobody_can_cancel(monkeypatch: Patch, state: s.State) -> None:
    lacks(monkeypatch, state, e.CancelRequested)
    ids, text = found(gates.cancel_shows)
    assert ids == {"gates.E006"} and state.value in text


def test_an_event_without_words(monkeypatch: Patch) -> None:
    sentences: Any = timeline.SENTENCES
    monkeypatch.delitem(sentences, e.CancelBegan)
    assert found(gates.cancel_shows) == ({"gates.E006"}, "The timeline has no words for CancelBegan.")


def test_an_undone_effect_that_still_stands(monkeypatch: Patch) -> None:
    monkeypatch.setattr("runs.machine.evolving.undone", lambda draft, by: None)
    assert found(gates.cancel_shows) == ({"gates.E006"}, "An effect that was undone still stands.")


def test_a_tool_that_nothing_undoes_as_it_says(monkeypatch: Patch) -> None:
    alone = replace(PAYER, tools=tuple(x for x in PAYER.tools if x.name != "take_back"))
    monkeypatch.setattr(gates, "registered", lambda: {("payer", "1"): alone})
    ids, text = found(gates.operation_ids)
    assert ids == {"gates.E002"} and "names take_back as what undoes it" in text


def test_a_state_without_a_next_safe_action(monkeypatch: Patch) -> None:
    real = safety.next_safe_action

    def partial(state: s.RunState) -> object:
        if state.state is s.State.CANCELLING:
            raise KeyError(state.state)
        return real(state)

    monkeypatch.setattr("runs.gates.next_safe_action", partial)
    ids, text = found(gates.three_answers)
    assert ids == {"gates.E007"} and "There is no next safe action in cancelling" in text


def test_a_confirmed_effect_that_is_not_found_again(monkeypatch: Patch) -> None:
    monkeypatch.setattr(s.RunState, "last_confirmed", None)
    assert found(gates.three_answers) == ({"gates.E007"}, "A confirmed effect is not found again.")


def test_a_handoff_that_lacks_a_line(monkeypatch: Patch) -> None:
    monkeypatch.setattr(handoff, "KEYS", handoff.KEYS[1:])
    ids, text = found(gates.handoff_lines)
    assert ids == {"gates.E008"} and "has other lines than it should" in text


def test_a_context_that_depends_on_more_than_the_state(monkeypatch: Patch) -> None:
    def nothing(*_: object) -> object:
        return object()

    monkeypatch.setattr(planning, "view_of", nothing)
    ids, _text = found(gates.context_rebuilt)
    assert ids == {"gates.E009"}


def test_a_context_that_leaves_something_out(monkeypatch: Patch) -> None:
    real = context.rebuilt
    monkeypatch.setattr(
        context, "rebuilt", lambda *more, **named: replace(real(*more, **named), constraints=())
    )
    ids, text = found(gates.context_rebuilt)
    assert ids == {"gates.E009"} and "lacks or changes" in text


def test_a_context_that_is_given_whatever_its_size(monkeypatch: Patch) -> None:
    real = context.rebuilt
    monkeypatch.setattr(context, "rebuilt", lambda *more, **named: real(*more, **{**named, "budget": 10**6}))
    ids, text = found(gates.context_rebuilt)
    assert ids == {"gates.E009"} and "asked with less" in text


@pytest.mark.parametrize("name", sorted(gates.DURABLE))
@pytest.mark.parametrize("value", ["off", None])
def test_a_database_that_could_lose_a_commit(name: str, value: str | None) -> None:
    values = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", name: value or ""}
    ids, text = found(lambda: gates.durability(values))
    assert ids == {"gates.E010"} and name in text


def test_a_gate_that_cannot_be_asked_is_not_passed(monkeypatch: Patch) -> None:
    def broken() -> gates.Faults:
        """Something holds."""
        raise RuntimeError("no table")

    monkeypatch.setattr(gates, "GATES", (broken,))
    faults: list[CheckMessage] = gates.gates(None)
    assert [(x.id, x.hint) for x in faults] == [("gates.E001", "Something holds.")]
