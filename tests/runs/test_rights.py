"""Rights on one run, on an agent, on a tenant: what each counts for, in lists, decisions and sends."""

from __future__ import annotations

from io import StringIO
from uuid import uuid4

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Membership, Tenant, User
from accounts.rights import Right, grant_right, may, withdraw_right
from approvals.outcomes import NotAllowedError, Recorded
from runs import actions
from runs.access import NotPermitted, RunNotFound, permitted, run_for, visible_runs
from runs.clock import database_now
from runs.machine.transitions import Decision
from runs.models import Agent, Run, Submission
from runs.queries import actionable, annotated, holders_of
from tests.outside import World
from tests.people import House, advance, assert_replays

APPROVE = Right.APPROVE_PLANS


@pytest.fixture
def newcomer(house: House) -> User:
    """A member without rights."""
    person = User.objects.create_user(username="newcomer", display_name="Newcomer")
    Membership.objects.create(user=person, tenant=house.tenant)
    return person


def _give(person: User, right: Right, on: Run | Agent | Tenant) -> None:
    grant_right(to=person, right=right, obj=on, actor=None, now=database_now())


def test_who_may_approve_one_run_sees_and_approves_that_one(
    house: House, newcomer: User, world: World
) -> None:
    run, other = house.waiting("2000"), house.waiting("2001")
    _give(newcomer, APPROVE, run)
    assert list(visible_runs(newcomer)) == [run] and run_for(newcomer, run.pk, APPROVE) == run
    assert list(annotated(newcomer, database_now()).filter(actionable(newcomer))) == [run]
    with pytest.raises(RunNotFound):
        run_for(newcomer, other.pk)
    assert newcomer in holders_of([APPROVE], run)[APPROVE] and not may(newcomer, APPROVE, house.agent)
    assert isinstance(house.decide(run, newcomer), Recorded)
    assert advance(run).state == "succeeded" and world.executed


def test_a_right_taken_from_the_run_stops_the_send_that_rests_on_it(
    house: House, newcomer: User, world: World
) -> None:
    run = house.waiting()
    _give(newcomer, APPROVE, run)
    house.decide(run, newcomer)
    withdraw_right(to=newcomer, right=APPROVE, obj=run, actor=None, now=database_now())
    assert advance(run).state == "waiting_approval" and not world.executed


@pytest.mark.parametrize("on", ["run", "agent", "tenant"])
def test_each_place_counts_for_what_belongs_to_it(house: House, newcomer: User, on: str) -> None:
    run, other = house.waiting("2000"), house.waiting("2001")
    places: dict[str, Run | Agent | Tenant] = {"run": run, "agent": house.agent, "tenant": house.tenant}
    _give(newcomer, APPROVE, places[on])
    assert may(newcomer, APPROVE, run)
    assert may(newcomer, APPROVE, other) == may(newcomer, APPROVE, house.agent) == (on != "run")
    assert may(newcomer, APPROVE, house.tenant) == (on == "tenant")
    assert permitted(newcomer, [APPROVE, Right.CANCEL_RUNS], [run.pk, other.pk]) == {
        APPROVE: frozenset([run.pk, other.pk] if on != "run" else [run.pk]), Right.CANCEL_RUNS: frozenset(),
    }  # fmt: skip


def test_a_right_on_a_run_of_a_tenant_that_one_left_is_none(house: House, newcomer: User) -> None:
    run = house.waiting()
    _give(newcomer, APPROVE, run)
    Membership.objects.filter(user=newcomer).update(active=False)
    assert not visible_runs(newcomer).exists() and not may(newcomer, APPROVE, run)
    with pytest.raises((RunNotFound, NotAllowedError)):
        house.decide(run, newcomer)


def test_the_check_of_a_page_of_runs_is_one_query(house: House, newcomer: User) -> None:
    runs = [house.start(str(number)).pk for number in range(3000, 3050)]
    _give(newcomer, APPROVE, Run.objects.get(pk=runs[7]))
    ContentType.objects.get_for_models(Run, Agent, Tenant)  # a process reads these once
    with CaptureQueriesContext(connection) as asked:
        found = permitted(newcomer, [Right.RECONCILE_EFFECTS, APPROVE, Right.OPERATE_RUNS], runs)
    assert len(asked) == 1 and found[APPROVE] == {runs[7]}
    with CaptureQueriesContext(connection) as asked:
        assert [run.pk for run in visible_runs(newcomer)] == [runs[7]]
    assert len(asked) == 1


def test_the_command_gives_rights_on_a_run_an_agent_and_a_tenant(house: House, newcomer: User) -> None:
    run = house.waiting()
    for place, on in (
        ([run.pk], run),
        (["payer", "--tenant=acme"], house.agent),
        (["--tenant=acme"], house.tenant),
    ):
        call_command("rights", "grant", "newcomer", "cancel_runs", *place, stdout=StringIO())
        assert may(newcomer, Right.CANCEL_RUNS, on)
        call_command("rights", "withdraw", "newcomer", "cancel_runs", *place, stdout=StringIO())
        assert not may(newcomer, Right.CANCEL_RUNS, on)
    with pytest.raises(CommandError, match="see_audit cannot be held on a run"):
        call_command("rights", "grant", "newcomer", "see_audit", run.pk)
    with pytest.raises(CommandError, match="Say on what"):
        call_command("rights", "grant", "newcomer", "see_audit")


def test_only_who_may_restart_restarts_and_only_who_may_cancel_ends(house: House, newcomer: User) -> None:
    run = house.approved()
    _give(newcomer, Right.OPERATE_RUNS, run)
    with pytest.raises(NotPermitted) as denied:
        actions.restart_run(person=newcomer, run_id=run.pk, note="anew", submission=uuid4())
    assert denied.value.denial.right is Right.RESTART_RUNS
    for decision, right in ((Decision.END, Right.CANCEL_RUNS), (Decision.RESTART, Right.RESTART_RUNS)):
        with pytest.raises(NotPermitted) as denied:
            actions.decide_run(
                person=newcomer, run_id=run.pk, decision=decision, note="so", submission=uuid4()
            )
        assert denied.value.denial.right is right


def test_who_may_rereduce_makes_the_rows_anew_and_that_is_kept(house: House, newcomer: User) -> None:
    run = house.waiting()
    Run.objects.filter(pk=run.pk).update(goal="Something else")
    with pytest.raises(NotPermitted):
        actions.rereduce_run(person=house.operator, run_id=run.pk, submission=uuid4())
    _give(newcomer, Right.REREDUCE_RUNS, house.tenant)
    form = uuid4()
    for _ in range(2):
        actions.rereduce_run(person=newcomer, run_id=run.pk, submission=form)
    assert_replays(run)
    kept = Submission.objects.get(pk=form)
    assert kept.person == newcomer and "run: goal is 'Something else'" in kept.result["differences"][0]
