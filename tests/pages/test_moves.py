"""The pages that move runs to another version: one run, and all of a version that nobody serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from approvals.models import Attempt
from runs import recovery
from runs.ledger import load
from runs.machine.state import State
from runs.models import Run, Submission
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.people import House, advance
from tests.runs.test_moves import serve, unserved

__all__ = ["serve"]

NOTE = "version 1 is switched off"
MANY = "/agents/payer/1/move/2/"


@pytest.fixture
def run(house: House, serve: Any) -> Iterator[Run]:
    """A run whose approved plan nobody can carry out: its version is gone."""
    run = house.approved()
    unserved(run)
    serve("SAME", "CHANGED", "OTHER_IDS")
    yield run


def sent(client: Client, address: str, **more: str) -> dict[str, str]:
    return {**form_of(read(client.get(address))).sends(), "note": NOTE, **more}


def test_one_run_is_moved_and_goes_on(house: House, world: World, run: Run, sign_in: SignIn) -> None:
    client, address = sign_in(house.operator), f"/runs/{run.pk}/move/"
    decide = read(client.get(f"/runs/{run.pk}/decide/"))
    assert decide.part("move-instead").one("a").attrs["href"] == address
    assert read(client.get(f"/runs/{run.pk}/stop/")).part("move-instead").all("a", href=address)
    page = read(client.get(address)).one("main")
    assert "Version 2 What is approved stays approved." in page.text
    assert (
        "Version 3 The present plan and its approval end, and the agent plans anew. tool:pay changed"
        in page.text
    )
    assert "Version 6 cannot take it over. Its tool pay calls pay:2000 payment:2000" in page.text

    form = sent(client, address, choice="2")
    answer = client.post(address, form, follow=True)

    assert "The run was moved to another version of its agent." in read(answer).part("result").text
    assert (
        "moved the run from version 1 to version 2 of its agent. “version 1 is switched off”"
        in read(answer).text
    )
    again = client.post(address, form, follow=True)
    assert "The run was moved" in read(again).part("result").text
    assert load(run.pk).identity.agent_version == "2"
    assert f"{run.pk} · Payer 2" in read(client.get("/inbox/?view=any")).text
    audit = read(client.get("/audit/?action=move")).text
    assert "moved the run from version 1 to version 2" in audit
    assert advance(run).state is State.SUCCEEDED


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"choice": ""}, "Choose the version that goes on with the run."),
        ({"choice": "2", "note": "short"}, "Enter a reason of at least 10 characters."),
        ({"choice": "6"}, "it could be done a second time"),
        ({"choice": "nonsense"}, "This console has no version nonsense of the agent."),
    ],
)
def test_what_cannot_be_is_refused_with_why_and_kept(
    house: House, run: Run, sign_in: SignIn, more: dict[str, str], said: str
) -> None:
    client, address = sign_in(house.operator), f"/runs/{run.pk}/move/"
    answer = client.post(address, sent(client, address, **more))
    assert answer.status_code == 422
    assert said in read(answer).one("main").text
    assert load(run.pk).identity.agent_version == "1"
    assert Attempt.objects.filter(action="move").count() == 1


def test_a_page_that_is_outdated_moves_nothing(house: House, run: Run, sign_in: SignIn) -> None:
    client, address = sign_in(house.operator), f"/runs/{run.pk}/move/"
    form = sent(client, address, choice="2")
    client.post(address, sent(client, address, choice="3"))
    assert client.post(address, form).status_code == 409
    assert load(run.pk).identity.agent_version == "3"


def test_a_run_that_cannot_be_moved_says_why(house: House, world: World, serve: Any, sign_in: SignIn) -> None:
    run, client = house.start(), sign_in(house.operator)
    page = read(client.get(f"/runs/{run.pk}/move/")).one("main")
    assert "This run" not in page.text and "The run does not wait for people." in page.text
    assert not page.all("form", method="post")
    assert not read(client.get(f"/runs/{run.pk}/stop/")).all(data_testid="move-instead")
    waits = house.waiting()
    assert (
        "This console has no other version of the agent." in read(client.get(f"/runs/{waits.pk}/move/")).text
    )


def test_the_version_that_nobody_serves_lists_its_runs_and_who_takes_them(
    house: House, run: Run, sign_in: SignIn
) -> None:
    page = read(sign_in(house.viewer).get("/agents/payer/1/"))
    assert run.pk in page.part("waiting-runs").text
    assert [a.attrs["href"] for a in page.part("heirs").all("a")] == [
        f"/agents/payer/1/move/{version}/" for version in ("2", "3", "6")
    ]
    recovery.announce("worker@new")
    assert not read(sign_in(house.viewer).get("/agents/payer/2/")).all(data_testid="waiting-runs")
    contract = read(sign_in(house.viewer).get("/agents/payer/2/")).part("contract-unmixed").text
    assert "it goes on with runs of version 1 that wait" in contract


def test_many_are_moved_and_the_page_says_which_and_why_not(
    house: House, world: World, run: Run, serve: Any, sign_in: SignIn
) -> None:
    serve("PAYER")
    busy, done, pending, ended = house.start("5"), house.start("6"), house.waiting("7"), house.waiting("8")
    advance(done)
    serve("SAME", "CHANGED", "OTHER_IDS")
    client = sign_in(house.operator)
    page = read(client.get(MANY))
    assert page.part("fits").text.startswith("3 runs can be moved")
    assert "1 run cannot be moved 1 × The run does not wait for people." in page.part("unfit").text
    assert "No worker serves version 2 now" in page.text
    assert done.pk not in page.text

    form = sent(client, MANY)
    house.cancel(ended)
    unserved(busy)  # it fits by now, and was not among those that the page said would be moved
    answer = read(client.post(MANY, form, follow=True))

    assert "2 runs were moved. 1 run was not, and stays as it is." in answer.part("result").text
    assert run.pk in answer.part("moved").text and pending.pk in answer.part("moved").text
    assert ended.pk in answer.part("refused").text
    assert "The end of the run was asked for." in answer.part("refused").text
    assert read(client.post(MANY, form, follow=True)).part("result").text == answer.part("result").text
    versions = dict(Run.objects.values_list("pk", "agent_version"))
    assert versions == {run.pk: "2", pending.pk: "2", busy.pk: "1", done.pk: "1", ended.pk: "1"}


def test_many_need_a_reason_and_the_right(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    answer = client.post(MANY, sent(client, MANY, note="short"))
    assert (answer.status_code, read(answer).one("textarea").text) == (422, "short")
    assert client.post(MANY, {"note": NOTE, "submission": "nonsense"}).status_code == 422

    viewer = sign_in(house.viewer)
    assert "Operator" in read(viewer.get(MANY)).part("why-not").text
    refused = viewer.post(MANY, {"note": NOTE, "submission": str(uuid4())})
    assert refused.status_code == 403
    assert "Operator" in read(refused).text
    assert sign_in(house.approver).post(MANY, {"note": NOTE, "submission": str(uuid4())}).status_code == 403
    assert [a.refusal for a in Attempt.objects.filter(action="move").order_by("at")] == [
        "form", "form", "not_allowed", "not_allowed",
    ]  # fmt: skip
    assert load(run.pk).identity.agent_version == "1"


def test_strangers_see_and_move_nothing(house: House, run: Run, sign_in: SignIn) -> None:
    """Their own agent has the same name: its page says nothing of these runs, and moves none of them."""
    client = sign_in(house.stranger)
    assert client.get(f"/runs/{run.pk}/move/").status_code == 404
    assert client.post(f"/runs/{run.pk}/move/", {"choice": "2"}).status_code == 404
    page = read(client.get(MANY))
    assert "0 runs can be moved" in page.text and run.pk not in page.text
    client.post(MANY, {"note": NOTE, "runs": f"{run.pk} \x00 run_\u0661", "submission": str(uuid4())})
    assert load(run.pk).identity.agent_version == "1"
    assert Client().get(MANY)["Location"].startswith("/login/")
    assert not Submission.objects.filter(person=house.stranger).exclude(result={"refused": {}}).exists()


@pytest.mark.parametrize(
    "address", ["/agents/payer/1/move/5/", "/agents/payer/2/move/1/", "/agents/nobody/1/move/2/"]
)
def test_there_is_no_page_for_what_takes_nothing_over(
    house: House, run: Run, sign_in: SignIn, address: str
) -> None:
    assert sign_in(house.operator).get(address).status_code == 404
