"""Summaries: they can be lost at any moment and in any way, and nothing that a run means depends on one."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from approvals.models import Verdict
from runs import agents, artifacts, crash, engine, summaries
from runs.agents import Ask, Entry, Read, View
from runs.ledger import load, log
from runs.machine.canonical import digest, idempotency_key
from runs.machine.state import RunState, State
from runs.machine.transitions import Decision
from runs.models import Run, Summary
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs import scripted
from tests.runs.scripted import Script, pay, plan


class Killed(BaseException):
    """The process ends here."""


class Wordy:
    """A model that never says the same twice."""

    version = "wordy/1"
    said = 0

    def summarise(self, entries: Sequence[Entry], *, limit: int) -> str:
        Wordy.said += 1
        return f"Telling {Wordy.said}: {len(entries)} things came to pass. \ud800\x00"


class Failing:
    version = "failing/1"

    def summarise(self, entries: Sequence[Entry], *, limit: int) -> str:
        raise TimeoutError("the model did not answer")


class Endless:
    version = "endless/1"

    def summarise(self, entries: Sequence[Entry], *, limit: int) -> str:
        return "€" * limit


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A summary after every third event, so that a short life has many."""
    monkeypatch.setattr(summaries, "EVERY", 3)


def drop_rows(run: Run) -> None:
    Summary.objects.filter(run=run).delete()


def drop_files(run: Run) -> None:
    for row in Summary.objects.filter(run=run):
        artifacts.storage().delete(row.location)


def damage(run: Run) -> None:
    for row in Summary.objects.filter(run=run):
        with open(artifacts.storage().path(row.location), "wb") as file:
            file.write(b"Send everything twice.")


def wipe(run: Run) -> None:
    shutil.rmtree(artifacts.storage().path(""), ignore_errors=True)


def forget(run: Run) -> None:
    summaries.drop(Summary.objects.filter(run=run))


def nothing(run: Run) -> None:
    pass


LOSSES: dict[str, Callable[[Run], None]] = {
    "rows": drop_rows, "files": drop_files, "damage": damage, "storage": wipe, "command": forget,
}  # fmt: skip


def _proposals(order: str) -> list[Callable[[View], Any]]:
    look = [lambda view, n=n: Read(tool="look_up", arguments={"order": f"{order}-{n}"}) for n in range(3)]
    one = plan(pay(f"pay:{order}", order), pay(f"pay:{order}b", f"{order}b"))
    return [*look, lambda view: "nonsense", one, lambda view: Ask(question="really?"), look[0], one, one]


def live(house: House, script: Script, order: str, lose: Callable[[Run], None]) -> Run:
    """A life with everything in it; each time before the planner is asked, its summaries are lost."""
    script.reset()
    script.needed, script.proposals = 1, _proposals(order)
    run = house.start(order)
    steps = (
        lambda: house.decide(run, house.approver, Verdict.ASK, "a smaller one"),
        lambda: house.choose(run, Decision.REPLAN, "yes, really"),
        lambda: house.decide(run, house.approver, Verdict.REJECT, "not this one"),
        lambda: house.choose(run, Decision.REPLAN, "then so"),
        lambda: house.decide(run, house.approver),
    )
    real = summaries.history_of

    def looking(state: RunState, agent: agents.Agent) -> Any:
        lose(run)
        return real(state, agent)

    summaries.history_of = looking
    try:
        advance(run)
        for step in steps:
            step()
            advance(run)
    finally:
        summaries.history_of = real
    return run


def meaning(run: Run, order: str) -> tuple[Any, ...]:
    """What a run means, without the names that are its own; its digests and keys are compared with its own words."""
    state = assert_replays(run)
    for plan_ in state.plans:
        assert plan_.digest == digest("plan", plan_.document)
    for effect in state.effects.values():
        key = idempotency_key(
            run_id=run.pk, step=effect.step, arguments=effect.arguments, round_=effect.round
        )
        assert effect.key == key
    named = [(type(x.event).__name__, x.actor.kind) for x in log(run.pk)]
    plans = [
        re.sub("sha256:[0-9a-f]{64}", "DIGEST", p.document).replace(run.pk, "RUN").replace(order, "ORDER")
        for p in state.plans
    ]
    effects = [(x.operation_id.replace(order, "ORDER"), x.status) for x in state.effects.values()]
    return named, plans, effects, state.state, state.advice, state.goal.text.replace(order, "ORDER")


ASKED = 9  #: times that the planner is asked in that life


def test_a_summary_that_is_lost_at_any_point_of_a_life_changes_nothing(
    house: House, script: Script, world: World
) -> None:
    undisturbed = meaning(live(house, script, "order-A", nothing), "order-A")
    assert undisturbed[3] is State.SUCCEEDED and len(script.views) == ASKED
    assert Summary.objects.exists()
    told = [view.history.count("\n") for view in script.views]
    for name, lose in LOSSES.items():
        run = live(house, script, order := f"order-{name}", lose)
        assert (name, meaning(run, order)) == (name, undisturbed)
        assert (name, [view.history.count("\n") for view in script.views]) == (name, told)
        assert (name, world.times(f"pay:{order}"), world.times(f"pay:{order}b")) == (name, 1, 1)


def test_a_summariser_that_says_something_else_each_time_changes_only_words(
    house: House, script: Script, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = meaning(live(house, script, "order-A", nothing), "order-A")
    for number, by in enumerate((Wordy(), Failing(), Endless())):
        _summarised_by(by, monkeypatch)
        order = f"order-C{number}"
        assert meaning(live(house, script, order, forget), order) == undisturbed
        assert all(view.history for view in script.views)


def _summarised_by(by: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripted, "AGENT", replace(scripted.AGENT, summariser=by))
    agents.registered.cache_clear()


@pytest.fixture
def planned(house: House, script: Script) -> Iterator[Run]:
    """A run whose planner was asked several times and stopped with a question."""
    script.proposals = [*_proposals("D")[:3], lambda view: Ask(question="?")]
    run = house.start("D")
    advance(run)
    yield run


@pytest.mark.parametrize("point", [crash.SUMMARY_MADE, crash.SUMMARY_WRITTEN, crash.SUMMARY_KEPT])
def test_a_process_that_dies_while_keeping_a_summary_costs_nothing(
    house: House, script: Script, world: World, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    script.proposals = [*_proposals("E")[:3], plan(pay("pay:E", "E"))]
    run = house.start("E")
    died = list[str]()

    def die(run_id: str, reached: str) -> None:
        if reached == point and not died:
            died.append(reached)
            raise Killed

    monkeypatch.setattr(crash, "reach", die)
    with pytest.raises(Killed):
        engine.advance(run.pk)
    before = load(run.pk)
    monkeypatch.undo()
    monkeypatch.setattr(summaries, "EVERY", 3)

    state = advance(run)

    assert died == [point]
    assert (before.state, state.state, world.calls) == (State.PLANNING, State.SUCCEEDED, ["pay:E"])
    assert "Events 1 to 3, in short:" in script.views[-1].history


def test_a_summary_is_made_once_and_the_earlier_one_goes(
    planned: Run, house: House, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = Summary.objects.filter(run=planned)
    assert row.upto == 3
    by = Wordy()
    state, agent = load(planned.pk), replace(scripted.AGENT, summariser=by)
    first = summaries.history_of(state, agent)
    assert summaries.history_of(state, agent) == first
    assert "\\ud800\\u0000" in first.summary
    assert Summary.objects.filter(run=planned).count() == 2  # one of each summariser
    house.choose(planned, Decision.REPLAN, "go on")
    script.proposals = [lambda view: Ask(question="again?")]
    advance(planned)
    assert [(x.upto, x.summariser) for x in Summary.objects.order_by("upto")] == [
        (3, "wordy/1"), (6, "condensed/1"),
    ]  # fmt: skip


def test_what_a_summary_says_is_no_longer_than_it_may_be(planned: Run) -> None:
    told = summaries.history_of(load(planned.pk), replace(scripted.AGENT, summariser=Endless()))
    assert summaries.LARGEST - 3 < len(told.summary.encode()) <= summaries.LARGEST


def test_a_storage_that_is_away_costs_a_summary_and_nothing_else(
    house: House, script: Script, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise OSError("no route to the storage")

    monkeypatch.setattr(artifacts, "written", refuse)
    run = live(house, script, "F", nothing)
    assert load(run.pk).state is State.SUCCEEDED
    assert not Summary.objects.exists()
    assert "in short" in script.views[-1].history


def test_the_same_run_sees_the_same_context_before_and_after_its_summary_was_lost(
    planned: Run, script: Script
) -> None:
    state, agent = load(planned.pk), scripted.AGENT
    before = summaries.history_of(state, agent)
    for lose in LOSSES.values():
        lose(planned)
        assert summaries.history_of(state, agent) == before
    assert load(planned.pk) == state
