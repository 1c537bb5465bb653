"""A policy that a tenant holds: it counts instead of the agent's own, and from its commit nothing rests on another."""

from __future__ import annotations

import itertools
import json
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.db import connection, connections, transaction
from django.db.utils import IntegrityError
from django.test import Client

from accounts.models import Membership, Tenant, TenantGroup, User
from accounts.rights import Right, grant_right, withdraw_right
from approvals import held
from approvals.documents import DocumentRefused, policy_of
from approvals.models import PolicyRelease, PolicyVersion, Request, RequestState, Verdict
from approvals.outcomes import CheckFailedError, SeparationOfDutiesError, StaleError
from runs import actions, affected, agents, recovery, tryout
from runs.clock import database_now
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine.state import State
from runs.models import Event, Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.scripted import Script, pay, plan
from tests.runs.test_evidence import kinds
from tests.runs.test_fencing import _answered, _append, _send, _sends

RACES = 120
ALWAYS = {"name": "every plan", "when": "true"}


def hold(
    house: House,
    *rules: dict[str, Any],
    checks: tuple[dict[str, Any], ...] = (),
    release: bool = True,
    **more: Any,
) -> int:
    """The tenant holds these rules for the agent, and releases them."""
    text = json.dumps(
        {
            "rules": [{"name": f"rule {n}", **r} for n, r in enumerate(rules, 1)],
            "checks": list(checks),
            **more,
        }
    )
    grant_right(to=house.viewer, right=Right.MANAGE_POLICIES, obj=house.agent, actor=None, now=database_now())
    kept = actions.add_policy(
        person=house.viewer, agent=house.agent, text=text, reason="as agreed", submission=uuid4()
    )
    assert kept.number is not None
    if release:
        let_count(house, kept.number)
    return kept.number


def let_count(house: House, number: int | None) -> None:
    actions.release_policy(
        person=house.viewer, agent=house.agent, number=number, reason="as agreed", submission=uuid4(),
        seen=affected.impact(house.agent, number).digest,
    )  # fmt: skip


def group(house: House, title: str, *people: User) -> Group:
    made = Group.objects.create(name=str(uuid4()))
    TenantGroup.objects.create(group=made, tenant=house.tenant, title=title)
    made.user_set.add(*people)
    return made


def asked(run: Run) -> Request:
    return Request.objects.filter(subject__startswith=f"{run.pk}:").latest("opened_at")


def causes(run: Run) -> list[tuple[str, str, str]]:
    state = load(run.pk)
    return [(c.what, c.was, c.now) for request in state.requests for c in request.causes]


def test_it_counts_instead_of_the_agents_own(house: House, script: Script, world: World) -> None:
    script.needed = 0
    hold(house, {"when": 'cost >= money("50.00")', "needed": 2})
    run = house.waiting()
    assert (asked(run).policy_version, asked(run).needed) == ("payer/held/1", 2)
    for person in (house.approver, house.second):
        house.decide(run, person)
    assert advance(run).state is State.SUCCEEDED

    let_count(house, None)
    script.proposals = [plan(pay("pay:9", order="9"))]
    own = house.start(order="9")
    assert (
        advance(own).state is State.SUCCEEDED and not Request.objects.filter(subject=f"{own.pk}:1").exists()
    )


def test_a_release_ends_what_waits_from_its_commit_and_says_from_what_to_what(
    house: House, script: Script
) -> None:
    script.needed = 1
    run = house.waiting()
    hold(house, ALWAYS)
    with pytest.raises(StaleError) as stale:
        house.decide(run, house.approver)
    assert ("policy_version", "1", "payer/held/1") in [
        (c.what, c.before, c.after) for c in stale.value.changes
    ]
    assert asked(run).state == RequestState.PENDING

    assert actions.void_outdated(10) == 1
    assert actions.void_outdated(10) == 0
    state = advance(run)
    assert causes(run) == [("policy", "1", "payer/held/1")]
    assert (state.state, asked(run).policy_version) == (State.WAITING_APPROVAL, "payer/held/1")
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED


def test_a_batch_is_bounded_and_goes_on_where_it_stopped(house: House, script: Script) -> None:
    script.needed = 1
    runs = [house.waiting(order=str(n)) for n in range(3)]
    hold(house, ALWAYS)
    assert [actions.void_outdated(2) for _ in range(3)] == [2, 1, 0]
    assert all(causes(run) == [("policy", "1", "payer/held/1")] for run in runs)


@pytest.mark.parametrize("by_people", [True, False])
def test_an_approved_plan_is_not_sent_under_another_policy(
    house: House, script: Script, world: World, by_people: bool
) -> None:
    """Also one that the policy approved: what was needless before may take people now."""
    script.needed = int(by_people)
    script.proposals = [plan(pay("pay:1", order="1"), pay("pay:2", order="2"))]
    run = house.start()
    if by_people:
        advance(run)
        house.decide(run, house.approver)

    def release(when: str) -> None:
        if when == "after" and not PolicyRelease.objects.exists():
            hold(house, ALWAYS)

    world.hook = release
    state = advance(run)
    assert len(world.calls) == 1, "the second send came after the release"
    assert state.state is State.WAITING_APPROVAL and asked(run).policy_version == "payer/held/1"
    assert ("policy", "1", "payer/held/1") in [(c.what, c.was, c.now) for c in state.plans[0].voided]


def test_a_release_racing_a_send(house: House, script: Script, clock: Clock) -> None:
    """Each time either the send was committed before the release, or nothing was sent after its commit."""
    script.needed = 1
    script.proposals = [plan(*(pay(f"pay:{n}", order=str(n), amount="1.00") for n in range(RACES)))]
    hold(house, ALWAYS, limits={"irreversible": RACES})
    hold(house, {"when": "true", "needed": 2}, release=False)
    run = house.waiting()
    house.decide(run, house.approver)
    clock.move(timedelta(hours=-1))  # the approval outlasts the test
    _append(load(run.pk), [e.RevalidationPassed(checks=(e.Check(name="log", passed=True),))])
    gate, seen = threading.Barrier(2, timeout=60), list[int]()

    def releasing() -> None:
        try:
            for _ in range(RACES):
                gate.wait()
                let_count(house, 2)
                seen.append(_sends(run))
                gate.wait()
                gate.wait()
        except BaseException:
            gate.abort()
            raise
        finally:
            connections.close_all()

    thread = threading.Thread(target=releasing)
    thread.start()
    state, won, sent = load(run.pk), 0, list[int]()
    for _ in itertools.repeat(None, RACES):
        gate.wait()
        before, state = state.seq, _send(state, run, "policy")
        gate.wait()
        sent.append(_sends(run))
        let_count(house, 1)
        if state.seq > before:
            won += 1
            state = _append(state, [*_answered(state)])
        gate.wait()
    thread.join(60)
    assert sent == seen
    assert 0 < won < RACES, f"one side always came first: {won}"
    assert len(assert_replays(run).effects) == won


def test_a_quorum_is_met_by_members_of_a_group_and_looked_at_again_by_each_send(
    house: House, script: Script, world: World
) -> None:
    finance = group(house, "Finance", house.operator)
    hold(house, {"when": "true", "needed": 2}, {"when": "true", "groups": ["finance"]})
    grant_right(to=house.operator, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now())
    run = house.waiting()
    for person in (house.approver, house.second):
        house.decide(run, person)
    assert asked(run).state == RequestState.PENDING, "two approved, nobody of them from Finance"
    house.decide(run, house.operator)
    assert asked(run).state == RequestState.VALID

    finance.user_set.remove(house.operator)
    state = advance(run)
    assert world.calls == [] and state.state is State.NEEDS_HUMAN, "nobody is left in Finance"
    assert causes(run) == [("approvers", "1", "group:0")]


@pytest.mark.parametrize("lost", ["the right", "to another tenant"])
def test_of_a_quorum_one_who_may_not_any_more_resets_it_and_that_is_said(
    house: House, script: Script, world: World, lost: str
) -> None:
    hold(house, {"when": "true", "needed": 2, "not_by": ["other_tenant"]})
    grant_right(to=house.operator, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now())
    run = house.waiting()
    house.decide(run, house.approver)
    assert actions.lapsed_runs(10) == []
    if lost == "the right":
        withdraw_right(
            to=house.approver, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now()
        )
    else:
        Membership.objects.create(user=house.approver, tenant=Tenant.objects.get(slug="other"))
    with pytest.raises(StaleError, match="Approver"):
        house.decide(run, house.second)

    recovery.sweep()
    why = "right_missing:approve_plans" if lost == "the right" else "other_tenant:approve_plans"
    assert causes(run) == [("approvers", "", why)] and actions.lapsed_runs(10) == []
    assert (asked(run).state, asked(run).needed) == (RequestState.PENDING, 2)
    for person in (house.second, house.operator):
        assert world.calls == []
        house.decide(run, person)
    assert advance(run).state is State.SUCCEEDED


def test_who_left_the_group_a_moment_before_the_send_does_not_count(
    house: House, script: Script, world: World
) -> None:
    finance = group(house, "Finance", house.approver, house.second)
    hold(house, {"when": "true", "groups": ["Finance"]})
    script.proposals = [plan(pay("pay:1", order="1"), pay("pay:2", order="2"))]
    run = house.waiting()
    house.decide(run, house.approver)
    world.hook = lambda when: finance.user_set.remove(house.approver) if when == "after" else None
    state = advance(run)
    assert len(world.calls) == 1 and state.state is State.WAITING_APPROVAL
    house.decide(run, house.second)
    assert advance(run).state is State.SUCCEEDED


def test_members_of_another_tenant_neither_decide_nor_count_afterwards(
    house: House, script: Script, world: World
) -> None:
    hold(house, {"when": "true", "not_by": ["other_tenant"]})
    other = Tenant.objects.get(slug="other")
    Membership.objects.create(user=house.second, tenant=other)
    run = house.waiting()
    with pytest.raises(SeparationOfDutiesError, match="other_tenant"):
        house.decide(run, house.second)
    house.decide(run, house.approver)
    Membership.objects.create(user=house.approver, tenant=other)
    state = advance(run)
    assert world.calls == [] and state.state is State.NEEDS_HUMAN
    assert [(what, now) for what, _, now in causes(run)] == [("approvers", "other_tenant:approve_plans")]


def test_who_asked_for_the_changes_is_an_author_of_the_next_version(house: House, script: Script) -> None:
    hold(house, {"when": "true", "not_by": ["plan_author"]})
    run = house.waiting()
    house.decide(run, house.second, Verdict.ASK, "take the other supplier")
    advance(run)
    assert asked(run).excluded == {str(house.second.pk): "plan_author"}
    with pytest.raises(SeparationOfDutiesError, match="plan_author"):
        house.decide(run, house.second)
    house.decide(run, house.approver)


def test_who_asked_that_it_be_undone_is_the_author_of_the_plan_that_undoes(
    house: House, world: World
) -> None:
    hold(house, {"when": 'tool == "take_back_dear"', "not_by": ["plan_author"]})
    run = house.scripted([{"tool": "give_dear", "order": "2", "amount": "250.00"}, {"signal": "go"}])
    house.cancel(run, undo=True)
    assert advance(run).state is State.WAITING_APPROVAL
    assert asked(run).excluded == {str(house.operator.pk): "plan_author"}
    grant_right(to=house.operator, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=database_now())
    with pytest.raises(SeparationOfDutiesError, match="plan_author"):
        house.decide(run, house.operator)
    house.decide(run, house.approver)
    assert advance(run).state is State.CANCELLED and world.times("take_back_dear:2") == 1


HARD = {"name": "limit", "kind": "hard", "must": 'cost <= money("10")', "sentence": "At most 10.00 at once."}
SOFT = {**HARD, "name": "habit", "kind": "soft"}


def decide(house: House, run: Run, *, overrides: tuple[str, ...] = (), reason: str = "it is urgent") -> None:
    request = asked(run)
    actions.decide_plan(
        person=house.approver, run_id=run.pk, version=1, verdict=Verdict.APPROVE, reason=reason, digest=request.digest,
        conditions_digest=request.conditions_digest, submission=uuid4(), overrides=overrides,
        signed_in_at=database_now(),
    )  # fmt: skip


def test_a_hard_check_keeps_everybody_from_approving(house: House, script: Script, world: World) -> None:
    hold(house, checks=(HARD,))
    run = house.waiting()
    with pytest.raises(CheckFailedError, match="limit"):
        decide(house, run, overrides=("limit",))
    assert asked(run).state == RequestState.PENDING and "ApprovalGiven" not in kinds(run)


def review(house: House, run: Run) -> str:
    client = Client()
    client.force_login(house.approver, backend="django.contrib.auth.backends.ModelBackend")
    return client.get(f"/runs/{run.pk}/plan/1/review/").content.decode()


@pytest.mark.parametrize("check", [HARD, SOFT], ids=["hard", "soft"])
def test_a_check_of_the_agents_own_counts_where_its_code_is_not_at_hand(
    house: House, script: Script, world: World, check: dict[str, Any]
) -> None:
    """As in a console that runs without the agents, whose workers have them."""
    text = json.dumps({"rules": [ALWAYS], "checks": [check]})
    code = cast(dict[tuple[str, str], agents.Agent], agents.registered())
    code["payer", "1"] = replace(code["payer", "1"], policy=policy_of(text, version="own/1"))
    run = house.waiting()
    agent = code.pop(("payer", "1"))
    page = review(house, run)
    assert check["sentence"] in page and ('name="override"' in page) is (check is SOFT)
    with pytest.raises(CheckFailedError, match=check["name"]):
        decide(house, run)
    if check is SOFT:
        decide(house, run, overrides=("habit",))
        assert load(run.pk).requests[-1].decisions[0].overrides == ("habit",)
    code["payer", "1"] = agent
    assert advance(run).state is (State.SUCCEEDED if check is SOFT else State.WAITING_APPROVAL)
    assert bool(world.calls) is (check is SOFT)


def test_a_soft_check_takes_its_name_and_words_and_is_kept(
    house: House, script: Script, world: World
) -> None:
    hold(house, checks=(SOFT,))
    run = house.waiting()
    for wrong in ({}, {"overrides": ("other",)}, {"overrides": ("habit",), "reason": " "}):
        with pytest.raises(CheckFailedError):
            decide(house, run, **wrong)
    decide(house, run, overrides=("habit", "other"))
    assert load(run.pk).requests[-1].decisions[0].overrides == ("habit",)
    assert advance(run).state is State.SUCCEEDED


def test_a_rule_that_fails_means_that_people_are_asked(house: House, script: Script) -> None:
    hold(house, {"when": "arguments.missing == 1"})
    run = house.waiting()
    assert (asked(run).needed, asked(run).excluded[str(house.operator.pk)]) == (1, "principal")


def test_a_version_that_cannot_be_read_any_more_means_that_people_are_asked(
    house: House, script: Script
) -> None:
    number = hold(house, {"when": "false"}, release=False)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE approvals_policyversion DISABLE TRIGGER append_only")
        cursor.execute("UPDATE approvals_policyversion SET text = '{' WHERE number = %s", [number])
        cursor.execute("ALTER TABLE approvals_policyversion ENABLE TRIGGER append_only")
    let_count(house, number)
    run = house.waiting()
    assert asked(run).needed == 1


def test_a_release_names_what_it_ends_and_is_refused_where_that_changed(house: House, script: Script) -> None:
    script.needed = 1
    hold(house, ALWAYS, release=False)
    seen = affected.impact(house.agent, 1)
    run = house.waiting()
    now = affected.impact(house.agent, 1)
    assert (seen.count("pending"), now.count("pending"), now.rests[0].run) == (0, 1, run.pk)
    release = {"person": house.viewer, "agent": house.agent, "number": 1, "reason": "as agreed"}
    with pytest.raises(actions.PolicyOutdated):
        actions.release_policy(**release, seen=seen.digest, submission=uuid4())  # type: ignore[arg-type]
    submission = uuid4()
    for repeated in (False, True):
        kept = actions.release_policy(**release, seen=now.digest, submission=submission)  # type: ignore[arg-type]
        assert (kept.number, kept.repeated) == (1, repeated)
    assert PolicyRelease.objects.count() == 1


def test_a_group_that_the_tenant_has_not_is_refused_where_it_is_typed(house: House, script: Script) -> None:
    group(house, "Finance")
    other = Group.objects.create(name="other")
    TenantGroup.objects.create(group=other, tenant=Tenant.objects.get(slug="other"), title="Board")
    with pytest.raises(DocumentRefused) as refused:
        hold(house, {"when": "true", "groups": ["finance", "Board", "Finanse"]})
    assert [problem.partition("no group ")[2] for problem in refused.value.problems] == [
        "“Board” here. There are: Finance.",
        "“Finanse” here. There are: Finance.",
    ]
    assert not PolicyVersion.objects.exists()


def test_only_who_manages_policies_adds_and_releases(house: House, script: Script) -> None:
    for person in (house.operator, house.approver, house.stranger):
        with pytest.raises(actions.PolicyNotManaged):
            actions.add_policy(
                person=person, agent=house.agent, text='{"rules": []}', reason="mine", submission=uuid4()
            )
    assert not PolicyVersion.objects.exists()


def test_past_plans_are_judged_by_both(house: House, script: Script) -> None:
    script.needed = 0
    for amount in ("5.00", "60.00", "70.00"):
        script.proposals = [plan(pay(f"pay:{amount}", order=amount, amount=amount))]
        advance(house.start(order=amount))
    hold(house, {"when": 'cost >= money("65")'}, release=False)
    version = PolicyVersion.objects.get()
    then = held.read(agent="payer", number=1, text=version.text)
    today = agents.registered()["payer", "1"].policy
    found = tryout.tried(house.agent, today=today, then=then)
    assert [(t.today.needed, t.then.needed, t.differs) for t in found] == [
        (0, 1, True),
        (0, 0, False),
        (0, 0, False),
    ]
    assert Event.objects.filter(type="ApprovalRequested").count() == 0


@pytest.mark.parametrize("statement", [
    "UPDATE approvals_policyversion SET text = ''", "DELETE FROM approvals_policyrelease",
    "TRUNCATE approvals_policyversion CASCADE",
    "INSERT INTO approvals_policyrelease (tenant_id, agent, number, by_id, reason, at) "
    "SELECT tenant_id, agent, 7, author_id, 'r', at FROM approvals_policyversion",
])  # fmt: skip
def test_the_database_keeps_the_history(house: House, script: Script, statement: str) -> None:
    hold(house, ALWAYS)
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_a_plan_with_too_many_changes_that_cannot_be_undone_has_to_be_split(
    house: House, script: Script
) -> None:
    hold(house, ALWAYS)
    four = [pay(f"pay:{n}", order=str(n)) for n in range(4)]
    script.proposals = [plan(*four), plan(*four[:3], more=True)]
    run = house.start()

    state = advance(run)

    (refused,) = (x.event for x in log(run.pk) if isinstance(x.event, e.ProposalRefused))
    assert refused.problems == (
        "the plan holds 4 changes that cannot be undone, and the policy payer/held/1 allows 3 in one plan: "
        "split it, and propose the others once these are done",
    )
    assert "split it" in script.views[-1].history  # the planner is told
    assert state.state is State.WAITING_APPROVAL
    assert state.plan is not None and len(state.plan.plan.steps) == 3


def test_a_policy_can_allow_more_in_one_plan_or_less(house: House, script: Script) -> None:
    hold(house, ALWAYS, limits={"irreversible": 1})
    script.proposals = [plan(pay(), pay("pay:8", order="8")), plan(pay())]
    state = advance(house.start())
    assert state.plan is not None and len(state.plan.plan.steps) == 1
    with pytest.raises(DocumentRefused):
        hold(house, ALWAYS, limits={"irreversible": 0})
