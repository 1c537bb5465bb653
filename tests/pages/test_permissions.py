"""Who may do what, and why one person can or cannot: the pages say what the actions do."""

from __future__ import annotations

from urllib.parse import urlencode

from accounts.groups import make_group
from accounts.models import Membership, Tenant, User
from accounts.rights import Right, grant_right, withdraw_right
from runs.clock import database_now
from runs.ledger import load
from runs.models import Grant, Run
from runs.pages.why_cannot import answer
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import House
from tests.runs.conftest import script
from tests.runs.scripted import Script

__all__ = ["script"]


def ask(sign_in: SignIn, asker: User, right: Right, run: Run, person: User | None = None) -> str:
    """The page's answer, as text; empty where there is none."""
    asked = {"action": right.value, "run": run.pk, **({"person": str(person.pk)} if person else {})}
    answer = sign_in(asker).get(f"/permissions/check/?{urlencode(asked)}")
    assert answer.status_code == 200
    return read(answer).one("main").text


def test_each_rule_is_named_and_the_first_decides(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    assert "Yes: Approver can do this now" in ask(sign_in, house.approver, Right.APPROVE_PLANS, run)
    missing = ask(sign_in, house.viewer, Right.APPROVE_PLANS, run)
    assert "does not have the right “Approve plans” here" in missing and "on its agent (Payer)" in missing
    assert "People who can: Approver" in missing
    assert "is not stopped for a person" in ask(sign_in, house.operator, Right.RESTART_RUNS, run)
    assert "No effect of this run is in doubt" in ask(sign_in, house.operator, Right.RECONCILE_EFFECTS, run)
    house.decide(run, house.approver)
    assert "No plan of this run waits" in ask(sign_in, house.second, Right.APPROVE_PLANS, run)
    house.cancel(run)
    assert "The end of this run was asked for already" in ask(sign_in, house.operator, Right.CANCEL_RUNS, run)


def test_it_answers_of_any_action_for_a_run_an_agent_and_an_organisation(
    house: House, sign_in: SignIn
) -> None:
    """What cannot be held on a run is asked about at its agent or organisation."""
    run = house.waiting()
    client = sign_in(house.viewer)

    def asked(**what: str) -> str:
        answer = client.get(f"/permissions/check/?{urlencode({'person': str(house.operator.pk), **what})}")
        assert answer.status_code == 200
        return read(answer).one("main").text

    for right in Right:
        assert "Operator can" in asked(action=right.value, run=run.pk), right
    agent, tenant = f"agent-{house.agent.pk}", f"tenant-{house.tenant.pk}"
    lends = asked(action="start_runs", run=run.pk)
    assert "Yes: Operator can do this now with the agent Payer of Acme" in lends
    assert "Yes: Operator can do this now with the agent Payer" in asked(action="operate_runs", on=agent)
    policies = asked(action="manage_policies", on=agent)
    assert "No: Operator cannot" in policies and "on this agent (Payer), or on all of Acme" in policies
    for action in ("manage_people", "see_audit"):
        for on in (agent, tenant):
            said = asked(action=action, on=on)
            assert "No: Operator cannot do this now with all of Acme" in said
            assert "It is held on all of Acme. Nobody may do this now" in said
    grant_right(to=house.operator, right=Right.SEE_AUDIT, obj=house.tenant, actor=None, now=database_now())
    assert "Yes: Operator can do this now with all of Acme: See" in asked(action="see_audit", on=tenant)
    for wrong in ("agent-0", f"tenant-{house.stranger.pk}", "x"):
        assert "There is no such agent or organisation" in asked(action="see_audit", on=wrong)
    other = f"tenant-{house.stranger.tenants().get().pk}"
    assert "There is no such agent or organisation" in asked(action="see_audit", on=other)


def test_what_the_action_would_refuse_is_told_before(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    assert "Yes: Approver" in ask(sign_in, house.approver, Right.APPROVE_PLANS, run)
    Grant.objects.filter(runs=run).update(ended_at=database_now(), why="", by=house.operator)
    assert "What the run acts on is over" in ask(sign_in, house.approver, Right.APPROVE_PLANS, run)
    grant_right(to=house.viewer, right=Right.REVISE_GOALS, obj=run, actor=None, now=database_now())
    assert "Yes: Viewer" in ask(sign_in, house.viewer, Right.REVISE_GOALS, run)
    house.cancel(run)
    ending = ask(sign_in, house.viewer, Right.REVISE_GOALS, run)
    assert "No: Viewer" in ending and "The end of this run was asked for already." in ending
    Tenant.objects.filter(pk=house.tenant.pk).update(second_factor=True)
    lacking = answer(house.viewer, Right.CANCEL_RUNS, run, load(run.pk))
    assert "does not have the right" in lacking.rule
    lacking = answer(house.operator, Right.CANCEL_RUNS, run, load(run.pk))
    assert lacking.rule == "An organisation demands a second factor that Operator has not set up yet."


def test_it_answers_about_other_people_of_ones_organisations_only(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    about = ask(sign_in, house.viewer, Right.APPROVE_PLANS, run, house.second)
    assert "Yes: Second can do this now" in about and "on Payer by the person alone" in about
    Membership.objects.filter(user=house.second).update(active=False)
    assert "Second does not belong to this organisation" in ask(
        sign_in, house.viewer, Right.APPROVE_PLANS, run, house.second
    )
    assert "Stranger" not in ask(sign_in, house.viewer, Right.APPROVE_PLANS, run, house.stranger)
    assert "You see no run with this id" in ask(sign_in, house.stranger, Right.VIEW_RUNS, run)


def test_who_is_kept_from_deciding_by_a_part_in_it_is_told_so(
    house: House, script: Script, sign_in: SignIn
) -> None:
    script.needed = 1
    run = house.waiting()
    grant_right(to=house.operator, right=Right.APPROVE_PLANS, obj=run, actor=None, now=database_now())
    page = ask(sign_in, house.operator, Right.APPROVE_PLANS, run)
    assert "No: Operator cannot do this now" in page and f"on {run.pk} by the person alone" in page
    assert "does not have the right" not in page


def test_refusals_and_who_may_act_lead_there(house: House, sign_in: SignIn) -> None:
    run = house.waiting()
    client = sign_in(house.viewer)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    wanted = f"/permissions/check/?action=approve_plans&amp;run={run.pk}"
    assert wanted in page
    refused = client.post(
        f"/runs/{run.pk}/stop/", {"choice": "cancel", "reason": "long enough words", "submission": "1" * 32}
    )
    assert refused.status_code == 403
    assert f"/permissions/check/?action=cancel_runs&amp;run={run.pk}" in refused.content.decode()


def test_rights_are_listed_with_their_places_and_only_of_ones_own(house: House, sign_in: SignIn) -> None:
    group = make_group(tenant=house.tenant, title="Payments approvers")
    house.second.groups.add(group.group)
    now = database_now()
    grant_right(to=group.group, right=Right.APPROVE_PLANS, obj=house.tenant, actor=None, now=now)
    withdraw_right(to=house.second, right=Right.APPROVE_PLANS, obj=house.agent, actor=None, now=now)
    text = read(sign_in(house.viewer).get("/permissions/")).one("main").text
    assert "Payments approvers: all of Acme" in text and "Approver: Payer" in text and "Second: Payer" in text
    assert "Stranger" not in text and "Other" not in text
    assert "Acme" not in read(sign_in(house.stranger).get("/permissions/")).one("main").text
    about = ask(sign_in, house.viewer, Right.APPROVE_PLANS, house.waiting(), house.second)
    assert "on Acme by the group Payments approvers" in about
