"""Lending anew to a run that lost what it acted on: from the page, and asked of a person again."""

from __future__ import annotations

from uuid import uuid4

from accounts.rights import Right, grant_right
from runs import actions, grants
from runs.clock import database_now
from runs.machine.state import State
from runs.models import Grant, Run
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.people import House, advance, assert_replays


def stopped(house: House) -> Run:
    """A run whose approval still matches, and whose grant was ended."""
    run = house.approved()
    grant = Grant.objects.get(runs=run)
    actions.end_grant(
        person=house.operator,
        grant=grant.pk,
        why="no",
        impact=grants.impact_of(grant).digest,
        submission=uuid4(),
    )
    assert advance(run).state is State.NEEDS_HUMAN
    return run


def test_lending_anew_names_what_is_lent_and_leads_to_an_approval(
    house: House, world: World, sign_in: SignIn
) -> None:
    run, client = stopped(house), sign_in(house.operator)
    decide = read(client.get(f"/runs/{run.pk}/decide/"))
    assert decide.part("lend-instead").one("a").attrs["href"] == f"/runs/{run.pk}/lend/"
    address = f"/runs/{run.pk}/lend/"
    page = read(client.get(address))
    assert "the grant was ended" in page.text and "Operator lends now: " in page.text
    short = client.post(address, {**form_of(page).sends(), "choice": "rest", "note": "no"})
    assert short.status_code == 422

    sent = {**form_of(page).sends(), "choice": "rest", "note": "carry on as before"}
    answer = read(client.post(address, sent, follow=True))

    assert "Authority was lent to the run anew." in answer.part("result").text
    assert client.post(address, sent).status_code == 302, "the same form again is the same decision"
    state = advance(run)
    assert (state.state, len(state.lendings)) == (State.WAITING_APPROVAL, 2)
    assert state.lendings[-1].lent.budget == "500.00"
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED


def test_lending_anew_is_the_next_safe_action_itself_for_whoever_may(
    house: House, world: World, sign_in: SignIn
) -> None:
    """Others who may decide are led to the other decisions, on the run's page and in the inbox."""
    run = stopped(house)
    may = {
        "operator": (f"/runs/{run.pk}/lend/", "Lend anew"),
        "second": (f"/runs/{run.pk}/decide/", "Decide how it goes on"),
        "approver": (f"/runs/{run.pk}/stop/", "Cancel the run"),
    }
    now = database_now()
    grant_right(to=house.second, right=Right.OPERATE_RUNS, obj=house.agent, actor=None, now=now)
    grant_right(to=house.approver, right=Right.CANCEL_RUNS, obj=house.agent, actor=None, now=now)
    for name, (address, label) in may.items():
        client = sign_in(getattr(house, name))
        page = read(client.get(f"/runs/{run.pk}/"))
        said = page.part("next-safe-action")
        assert (
            "Lend anew: then a person approves the rest of the plan again. Or decide otherwise: " in said.text
        )
        assert (address, label) in [(a.attrs["href"], a.text) for a in said.all("a")], name
        row = read(client.get("/inbox/?act=1")).one("main")
        assert (address, label) in [(a.attrs["href"], a.text) for a in row.all("a")], name
    who = read(sign_in(house.viewer).get(f"/runs/{run.pk}/")).part("who-may-act").text
    assert "Lend anew" in who and "Operator" in who


def test_who_may_not_start_runs_may_not_lend(house: House, world: World, sign_in: SignIn) -> None:
    run = stopped(house)
    assert "You may not decide this" in read(sign_in(house.viewer).get(f"/runs/{run.pk}/lend/")).text
    assert (
        sign_in(house.viewer).post(f"/runs/{run.pk}/lend/", {"submission": str(uuid4())}).status_code == 403
    )
    assert sign_in(house.stranger).get(f"/runs/{run.pk}/lend/").status_code == 404
    assert len(assert_replays(run).lendings) == 1
