"""Constraints of a configured document: what a run accepts of it, what a change does, and a source that is away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from pytest_django import Settings

from approvals.models import Verdict
from approvals.outcomes import StaleError
from runs import actions, agents, configuration, tasks
from runs.agents import Configuration, Step
from runs.configuration import kept, outside
from runs.ledger import log
from runs.machine import decide
from runs.machine import events as e
from runs.machine.revalidate import STATED
from runs.machine.state import RunState, State
from runs.machine.transitions import Decision
from runs.models import ConfigurationKept, Run
from runs.sources import SourceUnknown
from tests.configured import Configured, configured
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.scripted import AGENT, Script, pay, plan

SCOPE = {"name": "scope", "text": "Only orders of one tenant.", "predicate": 'arguments.order == "7"'}
WIDER = {"name": "scope", "text": "Orders of any tenant.", "predicate": 'arguments.order != ""'}
TONE = {"name": "tone", "text": "Be polite."}


@pytest.fixture
def source() -> Iterator[Configured]:
    with configured() as found:
        found.state(SCOPE)
        yield found


@pytest.fixture(autouse=True)
def asked_each_time(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    """Every question is asked, and a busy machine has time to answer it."""
    monkeypatch.setattr(kept, "FRESH", timedelta())
    waits(settings, timedelta(seconds=20))


def waits(settings: Settings, timeout: timedelta) -> None:
    settings.HANDOFF_DURATIONS = replace(settings.HANDOFF_DURATIONS, tool_timeout=timeout)


@pytest.fixture
def named(script: Script) -> Callable[..., None]:
    """The scripted agent names a configuration from here on."""

    def name(**more: Any) -> None:
        known = cast(dict[tuple[str, str], agents.Agent], agents.registered())
        known["payer", "1"] = replace(AGENT, configuration=Configuration(**more))

    return name


def waiting(house: House, script: Script) -> Run:
    """A run whose plan waits for approval."""
    script.needed = 1
    run = house.start()
    assert advance(run).state is State.WAITING_APPROVAL
    return run


def approve(house: House, run: Run) -> RunState:
    house.decide(run, house.approver, verdict=Verdict.APPROVE)
    return advance(run)


def codes(state: RunState) -> list[str]:
    return [r.code for r in state.reasons]


def heard(source: Configured) -> ConfigurationKept:
    return ConfigurationKept.objects.get(pk=source.url)


def age(source: Configured, by: timedelta) -> None:
    """As if that long ago everything was heard of the source, and nothing since."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_configurationkept SET asked_at = asked_at - age, good_until = good_until - age, "
            "tried_at = tried_at - age FROM make_interval(secs => %s) AS age", [by.total_seconds()],
        )  # fmt: skip


def test_a_run_accepts_what_the_document_states_and_goes_on_while_that_stands(
    house: House, script: Script, world: World, source: Configured, named: Callable[..., None]
) -> None:
    named(url=source.url)
    run = waiting(house, script)
    source.state(SCOPE)  # the very same

    state = approve(house, run)

    assert state.state is State.SUCCEEDED and world.times("pay:7") == 1
    (accepted,) = state.constraints
    term = accepted.term
    assert (term.name, term.text, term.predicate) == tuple(SCOPE.values())
    assert (term.source_kind, term.source_ref, term.source_version) == (
        "orchestrator",
        source.url,
        source.tag,
    )
    assert source.answered[0] == 200 and set(source.answered[1:]) == {304}
    assert set(source.asked[1:]) == {source.tag}


def test_scope_that_was_widened_while_the_run_was_dead_is_shown_with_both_texts_and_stops_it(
    house: House, script: Script, world: World, source: Configured, named: Callable[..., None]
) -> None:
    named(url=source.url)
    run = waiting(house, script)
    source.state(WIDER, TONE)

    state = approve(house, run)

    assert not world.executed
    assert (state.state, codes(state)) == (State.NEEDS_HUMAN, ["constraint_amended"])
    refused = next(x.event for x in log(run.pk) if isinstance(x.event, e.RevalidationRefused))
    first, second = (c for c in refused.checks if c.name == "constraints")
    assert (first.passed, first.subject, first.became) == (False, "C-1", "amended")
    assert first.was == f"{SCOPE['text']} [{SCOPE['predicate']}]"
    assert first.now == f"{WIDER['text']} [{WIDER['predicate']}]"
    assert (second.passed, second.became, second.now) == (True, STATED, TONE["text"])
    client = Client()
    client.force_login(house.operator, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(f"/runs/{run.pk}/").content.decode()
    for text in (SCOPE["text"], WIDER["text"], TONE["text"]):
        assert text in page, text


def test_a_limit_that_is_stated_anew_binds_new_runs_and_is_told_of_the_old(
    house: House, script: Script, world: World, source: Configured, named: Callable[..., None]
) -> None:
    named(url=source.url)
    run = waiting(house, script)
    source.state(SCOPE, TONE)

    state = approve(house, run)

    assert state.state is State.SUCCEEDED and [c.term.name for c in state.constraints] == ["scope"]
    assert state.revalidation is not None
    assert [c.now for c in state.revalidation.checks if c.became == STATED] == [TONE["text"]]
    assert [c.term.name for c in advance(house.start(order="8")).constraints] == ["scope", "tone"]


def test_what_the_document_does_not_state_any_more_is_withdrawn(
    house: House, script: Script, world: World, source: Configured, named: Callable[..., None]
) -> None:
    named(url=source.url)
    run = waiting(house, script)
    source.state(TONE)
    state = approve(house, run)
    assert codes(state) == ["constraint_withdrawn"] and not world.executed
    done = actions.restart_run(
        person=house.operator, run_id=run.pk, note="The scope is gone.", submission=uuid4()
    )
    assert [c.term.name for c in advance(Run.objects.get(pk=done.run)).constraints] == ["tone"]


@pytest.mark.parametrize("change", [
    {"status": 500}, {"status": 404}, {"body": b"{"}, {"body": b"[]"}, {"body": b'{"constraints": [{"name": "x"}]}'},
    {"body": b'{"constraints": [], "constraints": []}'}, {"body": b"\xff"}, {"body": b" " * 300_000},
    {"body": b'{"constraints": [{"name": "x", "text": "y", "predicate": "cost <= 1.5"}]}'},
    {"body": b'{"constraints": [{"name": "x", "text": "y"}, {"name": "x", "text": "z"}]}'},
    {"drips": 0.2}, {"status": 302, "moved": "http://127.0.0.1:9/"},
], ids=str)  # fmt: skip
def test_what_was_last_heard_counts_until_its_half_life_and_no_longer(
    house: House, script: Script, world: World, source: Configured, named: Callable[..., None],
    change: dict[str, Any], settings: Settings,
) -> None:  # fmt: skip
    named(url=source.url, half_life=timedelta(minutes=30))
    run, other = waiting(house, script), waiting(house, script)
    source.state(WIDER)
    for name, value in change.items():
        setattr(source, name, value)

    waits(settings, timedelta(seconds=0.5))
    configuration.ask_due()

    row = heard(source)
    assert row.failure and row.document and row.version != source.tag
    age(source, timedelta(minutes=29))
    assert approve(house, run).state is State.SUCCEEDED
    age(source, timedelta(minutes=1))
    house.decide(other, house.approver, verdict=Verdict.APPROVE)
    state = advance(other)
    assert state.state is State.APPROVED and state.retry_at is not None  # it is asked again first
    assert world.times("pay:7") == 1


def test_a_run_whose_source_stays_away_needs_a_person_and_goes_on_once_it_answers(
    house: House, script: Script, world: World, source: Configured, named: Callable[..., None], clock: Clock
) -> None:
    named(url=source.url)
    configuration.ask_due()
    source.status = 503
    age(source, timedelta(hours=2))
    run = house.start()

    for _ in range(decide.FAILURES_BEFORE_HUMAN):
        state = advance(run)
        clock.move(timedelta(minutes=1))

    assert (state.state, codes(state)) == (State.NEEDS_HUMAN, ["observation_stale"])
    assert "503" in state.reasons[0].evidence and not world.executed
    source.status = 200
    house.choose(run, Decision.RESUME)
    assert advance(run).state is State.SUCCEEDED
    assert_replays(run)


TELL = Step(name="tell:7", tool="tell", arguments={"order": "7", "amount": "1.00"})


def after_the_first_payment(world: World, do: Callable[[], object]) -> None:
    """While the first call is on its way, once every check of the run passed."""

    def hook(when: str) -> None:
        world.hook = None
        do()

    world.hook = hook


def test_a_send_finds_that_another_document_was_heard_since_the_checks_passed(
    house: House, script: Script, world: World, source: Configured, named: Callable[..., None]
) -> None:
    named(url=source.url)
    script.proposals = [plan(pay(), TELL)]
    run = house.start()

    def widen() -> None:
        source.state(WIDER)
        configuration.ask_due()

    after_the_first_payment(world, widen)
    state = advance(run)

    assert state.state is State.NEEDS_HUMAN and codes(state) == ["constraint_amended"]
    assert [x[0] for x in world.executed] == ["pay:7"]


def test_a_send_rests_on_no_document_that_was_heard_too_long_ago(
    house: House, script: Script, world: World, source: Configured, named: Callable[..., None]
) -> None:
    named(url=source.url)
    script.proposals = [plan(pay(), TELL)]
    run = house.start()

    def vanish() -> None:
        source.status = 500
        age(source, timedelta(hours=2))

    after_the_first_payment(world, vanish)
    state = advance(run)

    assert state.state is State.EXECUTING and state.retry_at is not None
    assert [x[0] for x in world.executed] == ["pay:7"]


def test_a_document_that_touches_no_accepted_limit_keeps_no_send(
    house: House, script: Script, world: World, source: Configured, named: Callable[..., None]
) -> None:
    named(url=source.url)
    script.proposals = [plan(pay(), TELL)]
    run = house.start()

    def state_more() -> None:
        source.state(SCOPE, TONE)
        configuration.ask_due()

    after_the_first_payment(world, state_more)
    assert advance(run).state is State.SUCCEEDED and len(world.executed) == 2


def test_many_runs_ask_an_address_once_in_a_while(
    house: House, script: Script, world: World, source: Configured, named: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(kept, "FRESH", timedelta(hours=1))
    named(url=source.url)
    for _ in range(2):
        advance(house.start())
    assert len(source.asked) == 1


def test_nothing_is_started_before_the_source_was_heard_once(
    house: House, script: Script, source: Configured, named: Callable[..., None]
) -> None:
    named(url=source.url)
    source.status = 500
    with pytest.raises(SourceUnknown, match="status 500"):
        house.start()
    assert not Run.objects.exists()
    source.status = 200
    assert advance(house.start()).constraints


def test_an_answer_that_was_asked_for_earlier_takes_no_later_ones_place(
    house: House,
    script: Script,
    source: Configured,
    named: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named(url=source.url)
    house.start()
    fetch = outside.fetch

    def slow(*args: Any, **more: Any) -> Any:
        answer = fetch(*args, **more)
        monkeypatch.setattr(kept, "fetch", fetch)
        source.state(WIDER)
        configuration.ask_due()
        return answer

    source.state(SCOPE, TONE)
    monkeypatch.setattr(kept, "fetch", slow)
    configuration.ask_due()
    assert heard(source).version == source.tag and "any tenant" in heard(source).document


def test_a_file_is_a_source_too_and_the_beat_asks_it(
    house: House, script: Script, world: World, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "limits.json"
    file.write_text('{"constraints": [{"name": "scope", "text": "One."}]}')
    settings.HANDOFF_CONFIGURATION = str(file)
    run = waiting(house, script)
    file.with_suffix(".new").write_text('{"constraints": [{"name": "scope", "text": "Two."}]}')
    file.with_suffix(".new").replace(file)
    tasks.ask_configurations()
    assert "Two." in ConfigurationKept.objects.get(pk=str(file)).document
    with pytest.raises(StaleError, match=r"constraints\.C-1"):
        approve(house, run)
    assert not world.executed


@pytest.mark.parametrize("wrong", [
    {}, {"path": "/a", "url": "http://a"}, {"url": "ftp://a/b"}, {"url": "http://me:secret@a/"}, {"path": "a.json"},
    {"path": "/a", "half_life": timedelta()}, {"url": "file:///etc/passwd"},
])  # fmt: skip
def test_a_configuration_that_names_no_source_is_refused_where_it_is_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Configuration(**wrong)


def test_checks_made_by_a_person_ask_the_source(
    house: House, script: Script, source: Configured, named: Callable[..., None]
) -> None:
    named(url=source.url)
    run = waiting(house, script)
    source.state(WIDER)
    client = Client()
    client.force_login(house.operator, backend="django.contrib.auth.backends.ModelBackend")
    client.post(f"/runs/{run.pk}/check/", {"submission": "1" * 32})
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "Orders of any tenant." in page and "Only orders of one tenant." in page
