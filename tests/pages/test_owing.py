"""What a run owes, on its pages: written down, handed on, stated to be done, and in the inbox until then."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from accounts.models import User
from accounts.rights import Right, grant_right
from approvals.models import Attempt
from runs import actions, recovery
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import RunState, State
from runs.models import Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.pages.test_inbox import rows
from tests.people import House, advance, assert_replays


@pytest.fixture
def keeper(house: House) -> User:
    grant_right(to=house.second, right=Right.ATTEST_EFFECTS, obj=house.agent, actor=None, now=database_now())
    return house.second


@pytest.fixture
def run(house: House, world: World) -> Run:
    """A run that waits for an answer."""
    return house.scripted([{"signal": "go"}, {"tool": "pay", "order": "7"}])


def owe(house: House, run: Run, **more: Any) -> RunState:
    actions.open_obligation(
        person=house.operator, run_id=run.pk, text="tell the auditor", to="Acme", submission=uuid4(),
        **{"owner": house.operator, **more},
    )  # fmt: skip
    return assert_replays(run)


def over(house: House, run: Run) -> Run:
    """The run was cancelled."""
    house.cancel(run)
    assert advance(run).state is State.CANCELLED
    return run


def form(client: Client, url: str) -> dict[str, str]:
    return form_of(read(client.get(url))).sends()


def preselected(client: Client, url: str) -> str | None:
    """Who is named as owner before anybody chose."""
    options = read(client.get(url)).one("select", id="field-owner").all("option")
    return next((x.attrs["value"] for x in options if "selected" in x.attrs), None)


def test_a_person_writes_down_what_is_owed(house: House, run: Run, keeper: User, sign_in: SignIn) -> None:
    client, url = sign_in(house.operator), f"/runs/{run.pk}/obligations/add/"
    section = read(client.get(f"/runs/{run.pk}/")).part("obligations")
    assert section.one("a", href=url).text == "Write down what this run owes"
    sent = form(client, url)
    assert preselected(client, url) == str(house.operator.pk)
    sent |= {"text": "Tell the auditor", "to": "Acme", "due": "2099-01-01T07:00", "owner": str(keeper.pk)}

    first, second = client.post(url, sent), client.post(url, sent)

    assert first["Location"] == second["Location"]
    page = read(client.get(first["Location"]))
    assert "What the run owes was written down." in page.part("result").text
    (owed,) = load(run.pk).open_obligations
    assert (owed.text, owed.to, owed.by) == ("Tell the auditor", "Acme", "")
    shown = page.one("li", id="obligation-B-1").text
    assert "owner Second" in shown and "due 2099-01-01 07:00:00" in shown and "to Acme" in shown
    assert "wrote down what the run owes: Tell the auditor." in page.part("timeline").text


def test_what_is_wrong_with_it_is_said_and_kept(house: House, run: Run, sign_in: SignIn) -> None:
    client, url = sign_in(house.operator), f"/runs/{run.pk}/obligations/add/"
    wrong = {"text": "", "to": "x" * 201, "due": "soon", "owner": str(house.viewer.pk)}

    answer = client.post(url, {**form(client, url), **wrong})

    page = read(answer)
    assert answer.status_code == 422
    for said in (
        "Enter what the run owes.",
        "these are 201",
        "Enter a date and a time in UTC",
        "Choose who keeps",
    ):
        assert said in page.text, said
    assert page.one("input", id="field-due").attrs["value"] == "soon"
    past = {"text": "x", "due": "2001-01-01T00:00", "owner": str(house.operator.pk)}
    answer = client.post(url, {**form(client, url), **past})
    assert answer.status_code == 422 and "This time is over." in read(answer).text
    assert load(run.pk).obligations == () and Attempt.objects.count() == 2


def test_a_statement_discharges_it_on_the_closed_run(
    house: House, run: Run, keeper: User, sign_in: SignIn
) -> None:
    owe(house, run)
    over(house, run)
    url, client = f"/runs/{run.pk}/obligations/1/attest/", sign_in(keeper)
    page = read(client.get(f"/runs/{run.pk}/"))
    assert page.part("next-safe-action").one("a", href=url).text == "State that B-1 is done"
    assert read(client.get(url)).part("owed").text.startswith("B-1 tell the auditor")
    sent = form(client, url)

    short = client.post(url, {**sent, "how": "done", "reference": ""})
    done = client.post(url, {**form(client, url), "how": "I called them myself.", "reference": "ticket 7"})

    assert short.status_code == 422
    assert "Enter how this was established" in read(short).text and "Enter the reference" in read(short).text
    page = read(client.get(done["Location"]))
    assert "what was owed is done" in page.part("result").text
    shown = page.one("li", id="obligation-B-1").text
    assert "discharged by what Second stated" in shown and "I called them myself. Proof: ticket 7" in shown
    assert "Nothing. The run is over." in page.part("next-safe-action").text
    again = client.post(url, {**sent, "submission": str(uuid4()), "how": "I called them.", "reference": "8"})
    assert again.status_code == 409 and "not owed here any more" in read(again).text
    assert assert_replays(run).open_obligations == ()


def test_it_is_handed_on_and_the_page_names_who_can(
    house: House, run: Run, keeper: User, sign_in: SignIn
) -> None:
    owe(house, run)
    url, client = f"/runs/{run.pk}/obligations/1/hand-on/", sign_in(house.operator)
    options = [x.text for x in read(client.get(url)).one("select", id="field-owner").all("option")]
    assert options == ["Choose", "Second"]

    unchosen = client.post(url, form(client, url))
    done = client.post(url, {**form(client, url), "owner": str(keeper.pk), "note": "I am on leave."})

    assert unchosen.status_code == 422 and "Choose who keeps it." in read(unchosen).text
    page = read(client.get(done["Location"]))
    assert "owner Second" in page.one("li", id="obligation-B-1").text
    assert "handed B-1 to Second: “I am on leave.”" in page.part("timeline").text
    viewed = read(sign_in(house.viewer).get(url))
    assert "You may not hand this on" in viewed.text and not viewed.one("main").all("form")


def test_whoever_cancels_chooses_who_keeps_it(house: House, run: Run, keeper: User, sign_in: SignIn) -> None:
    owe(house, run)
    url, client = f"/runs/{run.pk}/stop/", sign_in(house.operator)
    sent = form(client, url)
    assert preselected(client, url) == str(house.operator.pk)

    strange = client.post(url, {**sent, "reason": "not needed any more", "owner": str(house.viewer.pk)})
    client.post(url, {**form(client, url), "reason": "not needed any more", "owner": str(keeper.pk)})

    assert strange.status_code == 422 and "Choose who keeps what the run still owes." in read(strange).text
    state = advance(run)
    assert state.hands_to is not None and state.hands_to.id == str(keeper.pk)


def test_overdue_stands_first_in_the_inbox_until_it_is_done(
    house: House, run: Run, world: World, keeper: User, sign_in: SignIn, clock: Clock
) -> None:
    """A closed run whose time is over comes before one that is due later, and an open one is listed too."""
    later = over(house, _owing(house, database_now() + timedelta(days=9)))
    late = over(house, _owing(house, database_now() + timedelta(hours=1)))
    owe(house, run, due_at=database_now() + timedelta(hours=1))
    clock.move(timedelta(hours=2))
    recovery.sweep()

    listed = rows(sign_in(keeper), "?view=all&mine=1")

    assert [row.attrs["data-run"] for row in listed][2:] == [later.pk]
    assert {row.attrs["data-run"] for row in listed[:2]} == {late.pk, run.pk}
    first = next(row.text for row in listed if row.attrs["data-run"] == late.pk)
    assert "Overdue: tell the auditor, to Acme, due 20" in first and "owner Operator" in first
    assert "Overdue" not in listed[2].text and "due 20" in listed[2].text
    opened = next(row for row in listed if row.attrs["data-run"] == run.pk)
    assert "Overdue: tell the auditor" in opened.text and "Waits for the answer “go”" in opened.text
    assert opened.one("a", href=f"/runs/{run.pk}/obligations/1/attest/").text == "State that B-1 is done"
    page = read(sign_in(keeper).get(f"/runs/{run.pk}/"))
    assert "Overdue" in page.one("li", id="obligation-B-1").text
    assert "noted that B-1 is overdue" in page.part("timeline").text
    assert "Overdue: 1." in page.part("handoff").one("li", data_key="obligations").text

    for each in (late, later, run):
        actions.attest_obligation(
            person=keeper,
            run_id=each.pk,
            obligation=1,
            how="I called them.",
            reference="t",
            submission=uuid4(),
        )
    assert rows(sign_in(keeper), "?view=all") == []


def _owing(house: House, due: datetime) -> Run:
    run = house.scripted([{"signal": "go"}, {"tool": "pay", "order": "7"}])
    owe(house, run, due_at=due)
    return run


def test_a_run_that_only_owes_says_so_to_who_may_do_something(
    house: House, run: Run, keeper: User, sign_in: SignIn
) -> None:
    owe(house, run)
    house.answer(run, "go")
    assert [r.code for r in advance(run).reasons] == ["obligation_open"]

    who = read(sign_in(keeper).get(f"/runs/{run.pk}/")).part("who-may-act").text

    assert "State that B-1 is done you. Owner: Operator." in who
