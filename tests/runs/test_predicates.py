"""The predicates of constraints: a proposal that breaks one is refused by its name; plain words are for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

import pytest
from django.test import Client

from approvals.expressions import ExpressionRefused, compiled
from runs import agents
from runs.agents import Bounds, Constraint, FromSignal, Late, Plan, Signal, Step
from runs.ledger import log
from runs.machine import decide
from runs.machine import events as e
from runs.machine.state import State
from runs.models import Run
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.scripted import AGENT, Script, pay, plan

CAP = 'tool != "pay" || cost <= money("40.00")'


def limit(
    predicate: str = "", *, name: str = "cap", text: str = "A payment is at most 40 EUR."
) -> Constraint:
    return Constraint(
        text=text, source_kind="configuration", source_ref="tests", source_version="1", name=name,
        predicate=predicate,
    )  # fmt: skip


@pytest.fixture
def limited(house: House, script: Script) -> Callable[..., Run]:
    """Starts a run of the scripted agent under these constraints."""

    def start(*constraints: Constraint, **more: Any) -> Run:
        known = cast(dict[tuple[str, str], agents.Agent], agents.registered())
        known["payer", "1"] = replace(AGENT, constraints=constraints)
        return house.start(**more)

    return start


def refusals(run: Run) -> list[e.ProposalRefused]:
    return [x.event for x in log(run.pk) if isinstance(x.event, e.ProposalRefused)]


def test_a_proposal_that_breaks_a_constraint_is_refused_by_its_name_and_nothing_is_sent(
    limited: Callable[..., Run], script: Script, world: World
) -> None:
    script.proposals = [plan(pay()), plan(pay(amount="40.00"))]
    run = limited(limit(CAP))

    state = advance(run)

    (refused,) = refusals(run)
    assert refused.broken == (
        e.Broken(constraint=1, name="cap", text="A payment is at most 40 EUR.", step="pay:7"),
    )
    assert refused.problems == ("C-1 “cap” is not kept in step pay:7: A payment is at most 40 EUR.",)
    assert [x[2]["amount"] for x in world.executed] == ["40.00"]
    assert [len(p.plan.steps) for p in state.plans] == [1]  # the refused one is no version
    first, second = script.views
    assert [(c.number, c.name, c.predicate) for c in first.accepted] == [(1, "cap", CAP)]
    assert "C-1 “cap” is not kept" in second.history  # the planner is told
    assert_replays(run)


@pytest.mark.parametrize("broken, kept", [
    ('system == "mail"', 'system == "bank"'),
    ('step == "pay:8"', 'step == "pay:7"'),
    ('reversible || arguments.order == "8"', 'reversible || arguments.order == "7"'),
    ('agent == "other"', 'agent == "payer"'),
    ("steps > 1", "steps == 1"),
    ('total_cost < money("50.00")', 'total_cost <= money("50.00")'),
])  # fmt: skip
def test_a_predicate_sees_the_step_as_policies_do(
    limited: Callable[..., Run], script: Script, world: World, broken: str, kept: str
) -> None:
    run = limited(limit(broken))
    state = advance(run)
    assert state.state is State.NEEDS_HUMAN and not world.executed
    assert all(x.broken for x in refusals(run)) and len(refusals(run)) == decide.FAILURES_BEFORE_HUMAN
    assert "C-1 “cap” is not kept" in state.reasons[0].evidence
    assert advance(limited(limit(kept))).state is State.SUCCEEDED


def test_a_predicate_that_has_no_value_for_a_step_counts_as_broken_and_says_why(
    limited: Callable[..., Run], script: Script, world: World
) -> None:
    run = limited(limit('arguments.currency == "EUR"', name=""))
    advance(run)
    (broken,) = refusals(run)[0].broken
    assert "currency" in broken.why
    assert (
        refusals(run)[0].problems[0].startswith("C-1 cannot be told to be kept in step pay:7, so it is not: ")
    )
    assert not world.executed


def test_one_that_this_code_cannot_read_any_more_counts_as_broken(
    limited: Callable[..., Run], script: Script, world: World
) -> None:
    old = limit(CAP)
    object.__setattr__(old, "predicate", "old_function(tool)")
    run = limited(old)
    assert advance(run).state is State.NEEDS_HUMAN
    assert "old_function" in refusals(run)[0].broken[0].why and not world.executed


def test_an_agent_cannot_be_registered_with_a_predicate_that_nobody_can_evaluate() -> None:
    with pytest.raises(ExpressionRefused):
        limit("cost <= 40.00")


def test_what_stands_already_is_answered_from_its_receipt_and_breaks_nothing(
    limited: Callable[..., Run], script: Script, world: World
) -> None:
    tell = Step(name="tell:7", tool="tell", arguments={"order": "7", "amount": "1.00"})
    script.proposals = [plan(pay(), more=True), plan(pay(), tell)]
    run = limited(limit('tool != "pay" || steps == 1'))
    assert advance(run).state is State.SUCCEEDED
    assert not refusals(run) and world.times("pay:7") == 1


def test_values_that_come_late_are_held_against_it_when_they_come(
    limited: Callable[..., Run], script: Script, house: House, world: World
) -> None:
    amount = Late(
        source=FromSignal(step="hear:price", path=""),
        bounds=Bounds(least=Decimal("1.00"), most=Decimal("50.00")),
    )
    late = Step(name="tell:7", tool="tell", arguments={"order": "7", "amount": amount})
    wait = Signal(name="hear:price", signal="price")
    script.proposals = [lambda view: Plan(steps=(wait, late)), plan(pay(amount="2.00"))]
    run = limited(limit('arguments.amount != "3.00"'))
    advance(run)
    house.answer(run, "price", '"3.00"')

    state = advance(run)

    (cause,) = state.plans[0].voided
    assert (cause.what, cause.subject, cause.was) == ("constraint_broken", "tell:7", "C-1 cap")
    assert [x[0] for x in world.executed] == ["pay:7"] and state.state is State.SUCCEEDED


def test_the_digest_of_constraints_from_before_there_were_predicates_is_the_same(house: House) -> None:
    state = advance(house.start())
    known = "sha256:e2450179486978b1f3a7da62003fc7a63d3c4901f2671d33be6a3b512362abf8"
    assert decide.constraints_digest(state) == known


def test_people_see_what_code_enforces_and_what_they_alone_can_judge(
    limited: Callable[..., Run], script: Script, house: House
) -> None:
    script.needed = 1
    words = limit(name="", text="Be kind to suppliers.")
    run = limited(limit('cost <= money("60.00")'), words)
    advance(run)
    client = Client()
    client.force_login(house.approver, backend="django.contrib.auth.backends.ModelBackend")

    page = client.get(f"/runs/{run.pk}/").content.decode()
    constraints = page[page.index('data-testid="constraints"') :]
    enforced, unchecked = constraints.index("Enforced by code:"), constraints.index("Not checked by code.")
    assert enforced < constraints.index("Be kind to suppliers.") < unchecked

    review = client.get(f"/runs/{run.pk}/plan/1/review/").content.decode()
    checks = review[review.index('class="checks"') :]
    row = checks[checks.index("Be kind to suppliers.") :]
    assert row.index("Only people can tell whether the plan keeps it.") < row.index("</tr>")
    assert "not available" not in review.lower()

    markdown = client.get(f"/runs/{run.pk}/handoff/?format=md").content.decode()
    assert "Not checked by code." in markdown


def test_it_is_compiled_once(limited: Callable[..., Run], script: Script) -> None:
    compiled.cache_clear()
    script.proposals = [plan(*(pay(f"pay:{n}", order=str(n), amount="1.00") for n in range(20)))]
    advance(limited(limit(CAP)))
    assert compiled.cache_info().misses == 1
