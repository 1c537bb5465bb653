"""The planner's context: whole or not at all, within its budget, the same each time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from runs import artifacts, context, planning, summaries
from runs.agents import Ask, Keep, View
from runs.artifacts import ArtifactMissing
from runs.history import CONDENSED, History, entries, lines
from runs.limits import LARGEST_RESULT
from runs.machine import decide, references
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical
from runs.machine.state import State
from runs.models import Artifact
from runs.tools import Reading
from tests.fixtures.clock import Clock
from tests.machine.lives import LIVES, OPERATOR, T0, Life, observed
from tests.machine.lives import planning as in_planning
from tests.outside import World
from tests.people import House, advance
from tests.runs.scripted import AGENT, LOOK, Script, pay, plan

NOW = T0 + timedelta(minutes=1)
FREE = {"artifacts", "history"}


def nothing_kept(hash_: str) -> bytes:
    raise ArtifactMissing(hash_, "gone")


def built(
    life: Life,
    budget: int,
    fetch: Callable[[str], bytes] = nothing_kept,
    history: History | None = None,
) -> View:
    told = history or History(since=tuple(entries(life.log)))
    return context.rebuilt(life.state, NOW, history=told, budget=budget, fetch=fetch)


def tied(name: str = "notes", data: bytes = b"so far", kind: str = "result") -> e.ArtifactKept:
    return e.ArtifactKept(
        artifact=references.content_hash(data), name=name, kind=kind, media_type="text/plain", size=len(data)
    )


def contract(view: View) -> dict[str, Any]:
    """All of a view but what the budget may leave out."""
    return {name: value for name, value in view.__dict__.items() if name not in FREE}


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """A life in some state, with readings and artifacts of some size."""
    life = LIVES[draw(st.sampled_from([x for x in s.State if x not in s.TERMINAL]))]()
    for number in range(draw(st.integers(0, 5))):
        life.take(
            tied(f"n{number % 2}", draw(st.binary(max_size=300)), draw(st.sampled_from(["result", "file"])))
        )
    if life.state.state is State.PLANNING:
        for text in draw(st.lists(st.text(max_size=200), max_size=5)):
            life.take(observed(value=canonical({"seen": text.encode(errors="replace").decode()})))
    return life


# A busy machine makes a life slowly; that says nothing about the context.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=200)
@given(life=lives(), budget=st.integers(1, 6000))
def test_whatever_the_budget_the_contract_is_whole_or_the_planner_is_not_asked(
    life: Life, budget: int
) -> None:
    whole = planning.view_of(life.state, NOW)
    try:
        view = built(life, budget, fetch=lambda _: b"x" * 40)
    except context.ContextTooLarge as refused:
        assert refused.size == context.size_of(whole) > budget
        return
    assert contract(view) == contract(whole)
    assert context.size_of(view) <= budget
    assert view == built(life, budget, fetch=lambda _: b"x" * 40)


def test_the_contract_has_goal_constraints_duties_advice_and_what_is_current() -> None:
    life = LIVES[State.PLANNING]().take(observed())
    late = changed(life.state, advice=("smaller steps",))
    owed = s.Obligation(number=1, text="tell them", by="x", opened_seq=1, opened_at=T0, due_at=None)
    view = planning.view_of(changed(late, obligations=(owed,)), NOW)
    assert (view.goal, view.advice, view.obligations) == ("Pay", ("smaller steps",), ("tell them",))
    assert view.constraints == ("Pay only open orders.",)
    assert [o.resource for o in view.observations] == ["order:7"]
    assert planning.view_of(life.state, T0 + timedelta(minutes=11)).observations == ()


def test_what_does_not_fit_is_named_with_its_size() -> None:
    life = LIVES[State.PLANNING]().take(observed(value=canonical({"seen": "y" * 500})))
    with pytest.raises(
        context.ContextTooLarge, match=r"observations 6\d\d, .*the planner was not asked"
    ) as refused:
        built(life, 500)
    assert refused.value.sizes["observations"] > 500


def test_a_long_value_is_given_whole_and_counts() -> None:
    text = canonical({"log": "z" * 5000})
    life = LIVES[State.PLANNING]().take(observed(value=references.reference(text)))
    view = built(life, 10_000, fetch=lambda _: text.encode())
    assert view.observations[0].value == {"log": "z" * 5000}
    with pytest.raises(context.ContextTooLarge):
        built(life, 4000, fetch=lambda _: text.encode())
    with pytest.raises(ArtifactMissing):
        built(life, 10_000)


def test_the_latest_result_of_a_name_comes_with_its_content_as_far_as_there_is_room() -> None:
    life = in_planning().take(tied(data=b"old"), tied(data=b"new" * 30), tied("letter", kind="file"))
    kept = {references.content_hash(x): x for x in (b"old", b"new" * 30, b"so far")}

    def shown(view: View) -> list[tuple[str, str | None]]:
        return [(a.name, a.content) for a in view.artifacts]

    whole = built(life, 5000, fetch=kept.__getitem__)
    assert shown(whole) == [("letter", None), ("notes", "new" * 30), ("notes", None)]
    assert shown(built(life, 5000)) == [("letter", None), ("notes", None), ("notes", None)]
    bare = context.size_of(replace(whole, artifacts=(), history=""))
    seen = [shown(built(life, bare + room, fetch=kept.__getitem__)) for room in range(0, 3000, 20)]
    assert [("letter", None), ("notes", None)] in seen and seen[-1] == shown(whole)
    assert built(life, bare + 10).artifacts == ()


def long_life(number: int) -> Life:
    """A log of many events: the same few things over and over."""
    life = in_planning()
    while len(life.log) < number:
        life.take(observed())
        life.take(*decide.proposal_refused(changed(life.state, failures=0), (f"no {len(life.log)}",)))
    return life


def test_a_run_of_ten_thousand_events_stays_within_its_budget() -> None:
    life = long_life(10_000)
    found = entries(life.log)
    summary = CONDENSED.summarise(found[:9950], limit=summaries.LARGEST)
    told = History(upto=9950, summary=summary, since=tuple(found[9950:]))
    for budget in (1000, 5000, 50_000):
        view = built(life, budget, history=told)
        assert context.size_of(view) <= budget
        assert view.history.splitlines()[-1].startswith(f"{len(life.log)} ")
    assert len(summary.encode()) <= summaries.LARGEST
    assert "ObservationRecorded: 4975 in events 2 to 9950" in summary
    assert built(life, 50_000, history=told).history == "\n".join(lines(told))


def test_history_that_is_cut_says_how_much_is_missing() -> None:
    life = long_life(40)
    view = built(life, context.size_of(planning.view_of(life.state, NOW)) + 400)
    first, *rest = view.history.splitlines()
    assert (
        first
        == f"({len(list(lines(History(since=tuple(entries(life.log)))))) - len(rest)} earlier lines are left out)"
    )
    assert built(life, context.size_of(planning.view_of(life.state, NOW))).history == ""


def test_lines_are_short_and_hold_no_digest_key_or_evidence() -> None:
    life = LIVES[State.SUCCEEDED]()
    life.take(
        e.EvidenceKept(
            effect=1, executed=None, reference="r" * 9000, evidence=e.raw('"seen"'), source="call", contradicts=False
        ),
        by=OPERATOR,
    )  # fmt: skip
    told = [entry.text for entry in entries(life.log)]
    assert max(map(len, told)) <= 300
    assert not any("sha256:" in text or '"seen"' in text for text in told)


def test_a_context_that_is_too_large_stops_the_run_with_its_sizes(
    house: House, script: Script, world: World, settings: Any
) -> None:
    settings.HANDOFF_CONTEXT_BUDGET = 600
    run = house.start(note="n" * 500)
    state = advance(run)
    (reason,) = state.reasons
    assert (state.state, reason.code, reason.subject) == (State.NEEDS_HUMAN, "planner_refused", "context")
    assert "its budget is 600: input 5" in reason.evidence
    assert script.views == []


def test_an_agent_may_declare_its_own_budget() -> None:
    assert context.budget_of(replace(AGENT, context_budget=77)) == 77
    assert context.budget_of(AGENT) == 1024 * 1024


def test_a_current_value_that_was_lost_stops_the_run_and_says_which(
    house: House, script: Script, world: World, clock: Clock
) -> None:
    script.proposals = [lambda view: LOOK, plan()]
    script.reading = lambda: Reading(value={"log": "z" * 70_000}, resource="order:7", version="v1")
    run = house.start()
    script.proposals = [lambda view: _lose(), plan()]
    state = advance(run)
    while state.state is State.PLANNING:
        clock.move(timedelta(seconds=20))
        state = advance(run)
    assert [(r.code, r.subject) for r in state.reasons] == [("planner_refused", "context")]
    assert "its file is gone. Nothing was changed." in state.reasons[0].evidence
    assert world.calls == []


def _lose() -> Any:
    """Propose to read, and lose what was read before the planner is asked again."""
    real = artifacts.put

    def loses(**more: Any) -> Artifact:
        artifacts.put = real
        row = real(**more)
        artifacts.storage().delete(row.location)
        return row

    artifacts.put = loses
    return LOOK


def test_a_planner_can_keep_results_and_gets_them_back(house: House, script: Script, world: World) -> None:
    script.proposals = [
        lambda view: Keep(name="notes", content="first"),
        lambda view: Keep(name="notes", content="second \u20ac\x00"),
        lambda view: Keep(name="notes", content="second \u20ac\x00"),
        plan(pay()),
    ]
    run = house.start()
    state = advance(run)
    assert state.state is State.SUCCEEDED
    assert [_results(view) for view in script.views] == [
        [], ["first"], ["second \u20ac\\u0000", None], ["second \u20ac\\u0000", None],
    ]  # fmt: skip
    assert state.failures == 0 and len(state.artifacts) == 2


def _results(view: View) -> list[str | None]:
    return [kept.content for kept in view.artifacts]


def test_a_planner_that_only_keeps_is_stopped(
    house: House, script: Script, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decide.artifacts, "READS_IN_A_ROW", 5)
    count = iter(range(1000))
    script.proposals = [lambda view: Keep(name="notes", content=str(next(count)))]
    state = advance(house.start())
    assert [r.code for r in state.reasons] == ["planner_refused"]
    assert len(state.artifacts) == 5 + 1


@pytest.mark.parametrize(
    "keep", [Keep(name=" ", content="x"), Keep(name="n", content="x" * (LARGEST_RESULT + 1))]
)
def test_a_result_without_name_or_end_is_refused(
    house: House, script: Script, world: World, keep: Keep
) -> None:
    script.proposals = [lambda view: keep, lambda view: Ask(question="?")]
    state = advance(house.start())
    assert (state.artifacts, [r.code for r in state.reasons]) == ({}, ["asked"])
