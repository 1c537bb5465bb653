"""The rehearsal: a run stops for each reason, each with its own next safe action, and each page says so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client
from django.test.utils import override_settings

from examples.lives.lives import LIFE, begin, follow
from examples.lives.stage import stage
from examples.refunds.demo.people import OPERATOR, PEOPLE, VIEWER, make_house
from runs import actions, agents, engine
from runs.ledger import load
from runs.machine.safety import Action, decisions_of, next_safe_action
from runs.machine.state import TERMINAL, EffectStatus, State
from runs.machine.transitions import REASONS
from runs.models import Run
from runs.pages import words
from tests.fixtures.clock import Clock


@pytest.fixture(scope="module")
def lives(shared_db: object) -> Iterator[dict[str, Run]]:
    """Every life, moved by an engine until it stops. No test goes on with a run that another looks at after it."""
    with override_settings(
        HANDOFF_AGENTS=[f"examples.lives.agent:{name}" for name in ("LIVES", "RULED", "SCOPED")]
    ):
        agents.registered.cache_clear()
        yield _lived()
    agents.registered.cache_clear()


def _lived() -> dict[str, Run]:
    refunds, people = make_house({who.username: f"password of {who.username}" for who in PEOPLE})
    agent, who = stage(refunds, people)
    runs = begin(agent, who)
    clock, end = Clock(), time.monotonic() + 60
    while (left := follow(runs, who)) and time.monotonic() < end:
        for reason in left:
            engine.advance(runs[reason].pk)
            for child in Run.objects.filter(parent=runs[reason]):
                engine.advance(child.pk)
        actions.mark_constraints(10)
        time.sleep(0.1)
        if left == ["observation_stale"]:
            clock.move(timedelta(seconds=5))  # between the tries at reading
    assert left == []
    assert [run.pk for run in begin(agent, who).values()] == [run.pk for run in runs.values()]
    return runs


def test_there_is_a_life_for_every_reason() -> None:
    assert {life.reason or name for name, life in LIFE.items() if not life.state} == set(REASONS)


def test_each_stops_for_its_reason_with_its_own_next_safe_action(lives: dict[str, Run]) -> None:
    client = Client()
    client.post("/login/", {"username": VIEWER.username, "password": f"password of {VIEWER.username}"})
    for name, run in ((name, run) for name, run in lives.items() if not LIFE[name].state):
        state, reason = load(run.pk), LIFE[name].reason or name
        assert [r.code for r in state.reasons] == [reason]
        action = next_safe_action(state)
        assert action.reason == reason
        assert action.decisions == (() if state.state in TERMINAL else decisions_of(state))
        assert (action.action is Action.RECONCILE) is (name in ("effect_unknown", "effect_conflict"))
        assert (action.action is Action.FIND) is (name == "paid_twice")
        page = client.get(f"/runs/{run.pk}/")
        assert page.status_code == 200
        said = words.sentence_case(words.reason(state.reasons[0])).split("%")[0]
        if name == "paid_twice":
            said = "contradicts the record of E-1"
        assert said in page.content.decode(), name


def test_the_run_that_nobody_serves_is_moved_to_the_version_that_takes_it_over(lives: dict[str, Run]) -> None:
    run, client = lives["version_unavailable"], Client()
    client.post("/login/", {"username": OPERATOR.username, "password": f"password of {OPERATOR.username}"})
    page = client.get("/agents/lives/0/").content.decode()
    assert run.pk in page and "/agents/lives/0/move/1/" in page
    sent = {"note": "version 0 is gone", "runs": run.pk, "submission": str(uuid4())}

    answer = client.post("/agents/lives/0/move/1/", sent, follow=True)

    assert "1 run was moved." in answer.content.decode()
    engine.advance(run.pk)
    assert load(run.pk).state is State.SUCCEEDED


#: What the page of a run says of an approval that ended unused.
CAUSES = {
    "voided_by_resource": "order:voided_by_resource changed from version v1 to version v2.",
    "voided_by_approver": "Gustav Moll, who approved, lost the right",
    "voided_by_quorum": "Gustav Moll, who approved, lost the right",
    "voided_by_policy": "from lives/1 to ruled/held/1",
    "voided_by_constraint": "The digest of the constraints changed from",
    "voided_by_grant": "lent to the run anew: grant G-",
    "out_of_bounds": "came as &quot;50.00&quot;. Nothing was sent.",
    "expired": "nobody’s approval stands.",
    "taken_back": "The order was paid by hand this morning.",
    "changes_asked": "asked for changes to plan v1.",
}


def _assert_ended_approvals_say_why(lives: dict[str, Run], client: Client) -> None:
    """Each is found in the inbox, unless the run went on without one, and says its cause."""
    inbox = client.get("/inbox/?view=waiting_approval").content.decode()
    for name, said in CAUSES.items():
        assert said in client.get(f"/runs/{lives[name].pk}/").content.decode(), name
        assert (lives[name].pk in inbox) is (LIFE[name].state == "waiting_approval"), name


#: What the page of a run says of what it took for true, read again or owed.
KNOWN = {
    "observation_same_value": (
        "Read again and as it was: offer:observation_same_value.",
        "the same, so the run went on",
    ),
    "observation_other_value": (
        "What was read about offer:observation_other_value changed: total 50.00 → 62.50 (+12.50).",
        "voided plan v1; the agent makes another.",
    ),
    "broken_assumption": (
        "“The offer for order broken_assumption stands.”, does not hold any more: offer:broken_assumption changed.",
        "total 50.00 → 62.50 (+12.50), version v1 → v2. Plan v1 ended with that.",
    ),
    "overdue_obligation": ("<strong>Overdue</strong>", "noted that B-1 is overdue"),
    "obligation_attested": ("handed B-1 to Anton Weiss", "discharged by what Anton Weiss stated"),
}


def test_what_was_known_and_owed_is_told_on_each_page(lives: dict[str, Run]) -> None:
    client = Client()
    client.post("/login/", {"username": OPERATOR.username, "password": f"password of {OPERATOR.username}"})
    for name, said in KNOWN.items():
        page = client.get(f"/runs/{lives[name].pk}/").content.decode()
        for sentence in said:
            assert sentence in page, (name, sentence)
    inbox = client.get("/inbox/?view=all").content.decode()
    assert lives["overdue_obligation"].pk in inbox and "Overdue: Tell the auditor what was ordered" in inbox
    assert lives["obligation_attested"].pk not in inbox


def test_some_wait_one_was_undone_and_approvals_ended_unused(lives: dict[str, Run]) -> None:
    client = Client()
    client.post("/login/", {"username": OPERATOR.username, "password": f"password of {OPERATOR.username}"})
    found = {
        name: client.get(f"/runs/{lives[name].pk}/").content.decode() for name in LIFE if LIFE[name].state
    }
    _assert_ended_approvals_say_why(lives, client)
    assert "Step rest waits for" in found["waiting_time"]
    assert "Wait for the answer “supplier_agrees”, or give it." in found["waiting_answer"]
    (part,) = Run.objects.filter(parent=lives["waiting_runs"])
    assert f"Wait: the run goes on when {part.pk} has ended." in found["waiting_runs"]
    assert "undone by" in found["undone"] and "What still stands" not in found["undone"]
    state = load(lives["undone"].pk)
    assert (state.state, state.effects[1].status) == (State.CANCELLED, EffectStatus.COMPENSATED)

    sent = {"name": "supplier_agrees", "payload": "yes", "submission": str(uuid4())}
    client.post(f"/runs/{lives['waiting_answer'].pk}/answer/", sent)
    engine.advance(lives["waiting_answer"].pk)
    assert load(lives["waiting_answer"].pk).state is State.SUCCEEDED


def test_limits_that_were_broken_inferred_and_widened_are_shown(lives: dict[str, Run]) -> None:
    client = Client()
    client.post("/login/", {"username": OPERATOR.username, "password": f"password of {OPERATOR.username}"})
    page = {
        name: client.get(f"/runs/{lives[name].pk}/").content.decode()
        for name in LIFE
        if "constraint" in name or name in ("scope_widened", "amendment_accepted")
    }
    assert "since it breaks C-2 “at most 500”" in page["constraint_broken"]
    assert load(lives["constraint_broken"].pk).plans == ()
    assert "Inferred by the agent. Confirmed by" in page["constraint_inferred"]
    assert "The supplier’s contract allows 60.00 EUR at a time." in page["constraint_inferred"]
    for text in ("Only orders of this department.", "Orders of any department."):
        assert text in page["scope_widened"]
    assert not load(lives["scope_widened"].pk).effects
    assert "The bank compares accounts by itself now." in page["constraint_revoked"]
    assert not load(lives["constraint_revoked"].pk).effects
    assert (
        "The supplier’s bank account was compared with the contract by two people."
        in page["amendment_accepted"]
    )
    assert load(lives["amendment_accepted"].pk).plans[-1].version == 3
