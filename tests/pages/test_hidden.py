"""Sensitive values: whoever may not see them finds them in no answer of any address; whoever may finds them all."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from accounts.guards import On
from accounts.rights import Right, grant_right, withdraw_right
from approvals.models import Attempt
from approvals.outcomes import NotAllowedError
from runs import actions, agents
from runs.clock import database_now
from runs.ledger import load
from runs.machine import decide
from runs.machine.state import EffectStatus, State
from runs.models import Event, Run
from runs.pages import reviewing
from runs.tools import Ambiguous, Call
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.pages.test_routes import routes
from tests.people import House, advance
from tests.secretive import ACCOUNT, INPUT, PIN, SECRETS, Wire

MARK = "takes the right “See sensitive values”"


@pytest.fixture
def secretive(house: House, world: World, settings: Settings) -> Iterator[House]:
    settings.HANDOFF_AGENTS = ["tests.secretive:AGENT"]
    agents.registered.cache_clear()
    yield house
    agents.registered.cache_clear()


def started(house: House, tool: str = "wire") -> Run:
    """A run whose plan waits for approval."""
    run = house.start("1", "250.00", caller=INPUT, tool=tool)
    advance(run)
    return run


def lived(house: House) -> Run:
    """A run that did two things, was refused a third, and stands stopped."""
    run = started(house)
    house.decide(run, house.approver)
    advance(run)
    assert load(run.pk).state is State.NEEDS_HUMAN
    return run


def leaks(answer: Any) -> list[str]:
    """The secrets in an answer, however they are written in it."""
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    text = body.decode("utf-8", "replace") + str(answer.headers)
    plain = html.unescape(text)
    ways = {s: (s, json.dumps(s)[1:-1], json.dumps(json.dumps(s))[2:-2], s[:12]) for s in SECRETS}
    return [s for s in SECRETS if any(way in text or way in plain for way in ways[s])]


def addresses(run: Run) -> Iterator[str]:
    """Every address that can be read about a run, and what they take beside the run."""
    state, base = load(run.pk), f"/runs/{run.pk}/"
    for route in routes(On.RUN, On.PERSON, On.AGENT):
        yield route.of(run.pk)
    for number in range(1, len(state.effects) + 1):
        yield f"{base}effects/{number}/reconcile/"
    for number in range(1, len(state.artifacts) + 1):
        yield f"{base}artifacts/{number}/"
    for seq in range(2, state.seq, 2):
        yield f"{base}replay/?seq={seq}"
    for more in ("events/?format=json", "handoff/?format=text", "handoff/?format=markdown", "notices/?seq=0"):
        yield base + more
    yield f"{reverse('inbox')}?view=any&q={ACCOUNT}"
    yield reverse("audit-export", args=["jsonl"])


def seen_by(client: Client, run: Run) -> dict[str, list[str]]:
    """Address -> secrets that stand in its answer."""
    found = {}
    for address in addresses(run):
        answer = client.get(address)
        assert answer.status_code != 500, address
        if told := leaks(answer):
            found[address] = told
    return found


def test_no_address_shows_a_hidden_value_and_all_are_there_for_those_who_may(
    secretive: House, sign_in: SignIn, caplog: pytest.LogCaptureFixture
) -> None:
    run = lived(secretive)
    grant_right(
        to=secretive.viewer, right=Right.SEE_AUDIT, obj=secretive.tenant, actor=None, now=database_now()
    )
    assert seen_by(sign_in(secretive.viewer), run) == {}
    assert not any(secret in caplog.text for secret in SECRETS)

    page = read(sign_in(secretive.viewer).get(f"/runs/{run.pk}/plan/1/"))
    assert MARK in page.text and str(PIN) not in page.text.split()
    client, shown = sign_in(secretive.approver), set()
    for more in ("plan/1/review/", "events/", "handoff/", "artifacts/1/"):
        shown |= set(leaks(client.get(f"/runs/{run.pk}/{more}")))
    assert shown == set(SECRETS)


def test_what_a_successor_takes_over_is_hidden_there_too(secretive: House, sign_in: SignIn) -> None:
    run = lived(secretive)
    successor = actions.restart_run(
        person=secretive.operator, run_id=run.pk, note="anew", submission=uuid4()
    ).run
    client = sign_in(secretive.viewer)
    for more in ("", "events/?format=json", "handoff/", "handoff.json"):
        answer = client.get(f"/runs/{successor}/{more}")
        assert answer.status_code == 200 and leaks(answer) == [], more


def test_whoever_cannot_see_the_values_cannot_approve_the_plan(secretive: House, sign_in: SignIn) -> None:
    run, person = started(secretive), secretive.second
    withdraw_right(to=person, right=Right.SEE_VALUES, obj=secretive.agent, actor=None, now=database_now())
    client, address = sign_in(person), f"/runs/{run.pk}/plan/1/review/"

    page = read(client.get(address))
    assert "Values of this plan are hidden from you, so you cannot approve it." in page.text
    assert "People who can: Approver." in page.text and MARK in page.text
    plan = load(run.pk).plan
    assert plan is not None and plan.digest in page.text and page.all("form", data_testid="decide") == []
    with pytest.raises(NotAllowedError):
        secretive.decide(run, person)
    sent = {
        "decision": "approve", "phrase": reviewing.phrase(load(run.pk), plan), "reason": "", "submission": str(uuid4()),
        "digest": plan.digest, "conditions": load(run.pk).requests[-1].conditions_digest,
    }  # fmt: skip
    assert client.post(address, sent).status_code == 403
    assert Attempt.objects.get(person=person).refusal == "not_allowed"
    assert load(run.pk).state is State.WAITING_APPROVAL

    grant_right(to=person, right=Right.SEE_VALUES, obj=run, actor=None, now=database_now())
    secretive.decide(run, person)
    assert load(run.pk).state is State.APPROVED


def test_no_name_is_made_of_a_hidden_value_and_no_refusal_quotes_one(secretive: House) -> None:
    run = started(secretive, tool="wire_by_account")
    state, bodies = load(run.pk), _bodies(run)
    assert state.plan is None
    refused = [body for body in bodies if "operation id is made of a sensitive value" in body]
    assert refused and not any(ACCOUNT in body for body in refused)


def test_the_digests_and_keys_of_a_plan_are_the_same_for_everybody(secretive: House, sign_in: SignIn) -> None:
    run = started(secretive)
    state = load(run.pk)
    step = state.remaining[0]
    for person in (secretive.viewer, secretive.approver):
        page = read(sign_in(person).get(f"/runs/{run.pk}/plan/1/review/"))
        text = "".join(page.text.split())
        assert state.plan and state.plan.digest in text and decide.key_of(state, step) in text
        assert "the stored plan is not the one" not in page.text


def test_the_outside_is_asked_with_the_values_also_by_whoever_does_not_see_them(
    secretive: House, world: World, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    world.answers, world.outage = ["lost"], "the bank is closed"
    run = started(secretive)
    secretive.decide(run, secretive.approver)
    advance(run)
    assert load(run.pk).effects[1].status is EffectStatus.UNKNOWN
    withdraw_right(
        to=secretive.operator, right=Right.SEE_VALUES, obj=secretive.agent, actor=None, now=database_now()
    )

    def query(_tool: Wire, call: Call) -> Ambiguous:
        asked.append(call.arguments)
        return Ambiguous(detail="no")

    monkeypatch.setattr(Wire, "query", query)
    sent = {"submission": str(uuid4())}
    assert sign_in(secretive.operator).post(f"/runs/{run.pk}/effects/1/ask/", sent).status_code == 302
    assert [arguments["to"] for arguments in asked] == [ACCOUNT]


def _bodies(run: Run) -> list[str]:
    return [body or "" for body in Event.objects.filter(run_id=run.pk).values_list("body", flat=True)]
