"""A tool that contradicts itself is named when the program starts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from pytest_django import Settings

from runs import checks
from tests.outside import PAYER, Give, Pay, PayOnce, TakeBack, World


class Forgetful(Pay):
    name = "forgetful"
    idempotency_retention: ClassVar[timedelta | None] = timedelta(seconds=1)


class Blank(Pay):
    name = "two words"


class Impatient(Pay):
    name = "impatient"
    patience: ClassVar[timedelta | None] = timedelta()


class Repeating(PayOnce):
    name = "repeating"
    repeatable_ids: ClassVar[bool] = True


class Lasting(Give):
    """Cannot be undone, and says what undoes it."""

    reversible = False


class Reader(Give):
    compensation = "look_up"


class Same(Give):
    compensation = "give"


class Wordless(Pay):
    """Says what undoes it, and not with which arguments."""

    name = "wordless"
    reversible = True
    compensation: ClassVar[str | None] = "take_back"


class BlindTakeBack(TakeBack):
    """A tool that undoes may be of any kind: its effect is one like any other."""

    queryable = False
    idempotency_retention = None


def faults(monkeypatch: pytest.MonkeyPatch, *tools: Any) -> list[str | None]:
    agent = replace(PAYER, tools=tools)
    monkeypatch.setattr(checks, "registered", lambda: {(agent.name, agent.version): agent})
    return [fault.id for fault in checks.tools(None)]


def test_the_agent_of_the_tests_is_sound(world: World) -> None:
    assert checks.tools(None) == []


@pytest.mark.parametrize(
    ("tools", "ids"),
    [
        ((Pay(), Pay()), ["runs.E001"]),
        ((Blank(),), ["runs.E002"]),
        ((Forgetful(),), ["runs.E003"]),
        ((Impatient(),), ["runs.E004"]),
        ((Repeating(),), ["runs.E005"]),
        ((Give(), TakeBack()), []),
        ((Give(), BlindTakeBack()), []),
        ((Lasting(), TakeBack()), ["runs.E009"]),
        ((Give(),), ["runs.E010"]),
        ((Reader(), PAYER.tools[0]), ["runs.E010"]),
        ((Same(),), ["runs.E010"]),
        ((Wordless(), TakeBack()), ["runs.E011"]),
    ],
)
def test_a_contradiction_is_named(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tools: tuple[Any, ...], ids: list[str]
) -> None:
    assert faults(monkeypatch, *tools) == ids


def test_a_version_that_takes_itself_over_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    heir = replace(PAYER, version="2", takes_over=("1", "2"))
    monkeypatch.setattr(checks, "registered", lambda: {("payer", "1"): PAYER, ("payer", "2"): heir})
    assert [fault.id for fault in checks.tools(None)] == ["runs.E006"]


def test_a_place_for_artifacts_is_needed(settings: Settings) -> None:
    assert checks.artifact_storage(None) == []
    settings.STORAGES = {name: x for name, x in settings.STORAGES.items() if name != "artifacts"}
    assert [fault.id for fault in checks.artifact_storage(None)] == ["runs.E007"]


def test_a_context_needs_room(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = replace(PAYER, context_budget=0)
    monkeypatch.setattr(checks, "registered", lambda: {(agent.name, agent.version): agent})
    assert [fault.id for fault in checks.tools(None)] == ["runs.E008"]


@pytest.mark.parametrize("source", ["limits.json", "ftp://a/limits", "https://me:secret@a/limits"])
def test_a_configuration_that_names_no_source_is_named_at_the_start(settings: Settings, source: str) -> None:
    settings.HANDOFF_CONFIGURATION = source
    (fault,) = checks.configuration(None)
    assert fault.id == "runs.E012" and "secret" not in fault.msg
    settings.HANDOFF_CONFIGURATION = "https://a/limits"
    assert checks.configuration(None) == []
