"""The contract of an agent: each kind of tool stands where its declarations put it, and nothing is left out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from runs.contract import KEPT, length, sections, versions
from runs.machine.state import RunState
from runs.tools import WritingTool
from runs.versions import recorded
from tests.outside import PAYER, Pay, PayArguments, World

#: Of the state's fields, those that say where the run is, and not what it means or did.
CURSORS = {
    "seq", "at", "state", "direction", "before", "since", "produced", "successor", "returned_seq",
    "history_lost", "cancel_requested", "retry_at", "failures", "replans", "reads",
    "blocked", "constrained_seq", "projected",
}  # fmt: skip


def lines() -> dict[str, str]:
    return {section.key: "\n".join(section.lines) for section in sections(PAYER)}


def test_each_kind_of_tool_stands_in_its_section() -> None:
    found = lines()
    assert "pay (bank): under the same key, for 1 h" in found["resent"]
    assert "pay_by_key (bank): under the same key, for 1 h" in found["resent"]
    assert "pay_once" not in found["resent"] and "pay_blind" not in found["resent"]
    assert [line.split()[0] for line in found["asked"].splitlines()] == ["pay_once"]
    assert [line.split()[0] for line in found["keyed"].splitlines()] == ["pay_by_key"]
    assert [line.split()[0] for line in found["blind"].splitlines()] == ["pay_blind"]
    assert "pay (bank)" in found["undone"] and "tell" not in found["undone"]


def test_what_can_be_undone_and_by_which_tool() -> None:
    found = lines()["compensated"].splitlines()
    assert "give (bank): undone by take_back, with an intent, key and receipt of its own." in found
    assert "tell (mail): can be undone outside, by no tool of this agent." in found
    assert not [line for line in found if line.startswith("pay ")]
    assert "One answer ends one wait." in lines()["waits"]


def test_whose_ids_repeat_is_said_of_each_tool() -> None:
    found = lines()["alone"].splitlines()
    assert [line.split()[0] for line in found if "any number of lineages" in line] == ["pay_anyone"]
    assert len(found) == sum(isinstance(tool, WritingTool) for tool in PAYER.tools)


def test_no_section_is_empty() -> None:
    bare = replace(PAYER, tools=(), constraints=())
    assert all(section.lines for section in sections(bare))
    assert {s.key: s.lines for s in sections(bare)}["blind"] == ("None.",)


def test_policy_constraints_and_times_are_in_it() -> None:
    found = lines()
    assert "from 100 EUR: 1 person with the right “Approve plans”" in found["agreed"]
    assert "Pay only open orders. (configuration payer 1)" in found["limits"]
    assert "look_up (shop): what it read may be taken for current for 10 min." in found["times"]


def test_every_part_of_the_state_is_named_or_a_cursor() -> None:
    """A part that is added to the state has to be given words, or to be called a cursor here."""
    fields = {name for name in RunState.__struct_fields__ if not name.startswith("_")}
    assert fields - CURSORS == set(KEPT)


def test_what_must_not_be_mixed_changes_with_its_parts() -> None:
    class More(PayArguments):
        note: str

    class Changed(Pay):
        schema = More  # a schema of its own, as any tool may have

    known = versions(replace(PAYER, tools=(Pay(),), versions={"model": "m-1", "prompt": "p-3"}))
    assert (known["agent"], known["policy"], known["model"], known["prompt"]) == ("1", "1", "m-1", "p-3")
    changed = versions(replace(PAYER, tools=(Changed(),)))
    assert known["tool:pay"].startswith("sha256:") and known["tool:pay"] != changed["tool:pay"]


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        (timedelta(seconds=0.5), "0.5 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(seconds=90), "1 min 30 s"),
        (timedelta(hours=25, seconds=5), "1 d 1 h"),
    ],
)
def test_lengths_in_words(duration: timedelta, words: str) -> None:
    assert length(duration) == words


def test_what_a_version_takes_over_is_said_where_versions_are() -> None:
    assert "It takes over no other version’s runs." in lines()["unmixed"]
    heir = {s.key: "\n".join(s.lines) for s in sections(replace(PAYER, version="3", takes_over=("1", "2")))}
    assert "it goes on with runs of version 1, 2 that wait" in heir["unmixed"]


def test_what_must_not_be_mixed_is_what_a_run_is_bound_to() -> None:
    assert recorded(PAYER).items() <= versions(PAYER).items()
    assert all(f"{part}: {version}" in lines()["unmixed"] for part, version in recorded(PAYER).items())


def test_the_command_prints_it(world: World) -> None:
    out = StringIO()
    call_command("contract", "payer", "1", stdout=out)
    assert out.getvalue().startswith("Payer (payer 1)\n\nWhat outlives the process\n  - ")
    with pytest.raises(CommandError, match="Registered: payer 1"):
        call_command("contract", "payer", "2")


def test_how_much_a_planner_is_given_is_in_it() -> None:
    found = "\n".join(sections(replace(PAYER, context_budget=77))[0].lines)
    assert "at most 77 bytes" in found and "(condensed/1)" in found
