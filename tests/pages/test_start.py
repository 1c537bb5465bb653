"""Starting runs from a file: all or none, nothing twice, and what is wrong by row."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from accounts.rights import Right, grant_right
from approvals.models import Attempt
from examples.refunds import progress, views
from examples.refunds.starting import start_from_csv
from runs import agents
from runs.clock import database_now
from runs.models import Agent, Grant, Run
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.people import House

HEADER = "order,supplier,email,amount,currency,ticket\n"
GOOD = "order-{n},上海示例有限公司,pay@example.com,{n}.50,EUR,T-{n}\n"


@pytest.fixture
def refunds(house: House, settings: Settings) -> Iterator[Agent]:
    """The refund agent in the house: the operator may start, the viewer may look."""
    settings.HANDOFF_AGENTS = ["examples.refunds.agent:REFUNDS"]
    settings.ROOT_URLCONF = "tests.pages.start_urls"
    agents.registered.cache_clear()
    agent = Agent.objects.create(tenant=house.tenant, name="refunds", title="Supplier refunds")
    for right in (Right.VIEW_RUNS, Right.START_RUNS):
        _grant(house.operator, right, agent)
    _grant(house.viewer, Right.VIEW_RUNS, agent)
    yield agent
    agents.registered.cache_clear()


def _grant(person: User, right: Right, agent: Agent) -> None:
    grant_right(to=person, right=right, obj=agent, actor=None, now=database_now())


def rows(count: int, first: int = 1) -> str:
    return HEADER + "".join(GOOD.format(n=n) for n in range(first, first + count))


def send(client: Client, text: str | bytes, form: dict[str, str] | None = None, **more: Any) -> Any:
    """Choose the file and send the form."""
    page = read(client.get("/refunds/start/"))
    sent = form or {
        **form_of(page).sends(),
        "agent": page.one("select", name="agent").all("option")[-1].attrs["value"],
    }
    data = text.encode() if isinstance(text, str) else text
    return client.post("/refunds/start/", {**sent, "file": SimpleUploadedFile("orders.csv", data)}, **more)


def test_a_file_starts_a_run_for_each_row_once(refunds: Agent, house: House, sign_in: SignIn) -> None:
    client = sign_in(house.operator)

    first = send(client, rows(3), follow=True)
    second = send(client, rows(4), follow=True)

    assert "3 runs were started." in read(first).part("result").text
    said = read(second).part("result").text
    assert "1 run was started. 3 orders of the file had a run already; nothing was started twice." in said
    assert Run.objects.count() == 4
    newest = Run.objects.latest("created_at")
    assert [x.attrs["href"] for x in read(first).part("result").all("a")] == ["/runs/"]
    assert [x.attrs["href"] for x in read(second).part("result").all("a")] == [f"/runs/{newest.pk}/"]
    assert "上海示例有限公司" in newest.goal


def test_the_same_form_twice_starts_once_and_says_the_same(
    refunds: Agent, house: House, sign_in: SignIn
) -> None:
    client = sign_in(house.operator)
    page = read(client.get("/refunds/start/"))
    form = {**form_of(page).sends(), "agent": str(refunds.pk)}

    first, second = send(client, rows(2), form), send(client, rows(2), form)

    assert first["Location"] == second["Location"]
    assert "2 runs were started." in read(client.get(first["Location"])).part("result").text
    assert Run.objects.count() == 2


BAD: dict[str, tuple[str | bytes, str, str]] = {
    "a missing column": (rows(1).replace(",ticket", "", 1), "ticket", "The column is missing."),
    "a negative amount": (rows(2) + "order-9,A,a@b.c,-5.00,EUR,T-9\n", "4", "The amount is negative."),
    "a duplicate order": (rows(2) + GOOD.format(n=1), "4", "already stands in row 2"),
    "a formula": (rows(1) + "order-9,=1+1,a@b.c,5.00,EUR,T-9\n", "3", "begins like a formula"),
    "a NUL byte": (rows(1) + "order-9,A\0,a@b.c,5.00,EUR,T-9\n", "3", "NUL"),
    "nothing": ("", "whole file", "The file is empty."),
    "no UTF-8": (rows(1).encode() + b"order-9,\xff,a@b.c,5.00,EUR,T-9\n", "3", "not UTF-8"),
}


def test_a_bad_file_starts_nothing_and_names_the_row(refunds: Agent, house: House, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    for what, (text, place, cause) in BAD.items():
        answer = send(client, text)
        page = read(answer)
        problems: Node = page.part("errors")
        assert answer.status_code == 422, what
        assert page.one("title").text.startswith("Error:")
        assert "No run was started." in problems.text
        assert place in problems.one("tbody").text and cause in problems.one("tbody").text, what
    assert Run.objects.count() == 0
    assert [a.refusal for a in Attempt.objects.all()] == ["csv"] * len(BAD)


def test_the_page_says_what_is_lent_and_lends_it(refunds: Agent, house: House, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    page = read(client.get("/refunds/start/"))
    said = page.part("lending").text
    assert "close_ticket, mail_supplier, refund, reopen_ticket, runs" in said and "1 d 0 h, until 20" in said
    asked = {
        **form_of(page).sends(),
        "agent": str(refunds.pk),
        "budget": "80.50",
        "lasts": "8",
        "bound": "session",
    }

    done = read(send(client, rows(2), asked, follow=True)).part("result").text

    (grant,) = Grant.objects.all()
    assert (grant.budget, grant.expires_at - grant.lent_at) == (Decimal("80.50"), timedelta(hours=8))
    assert grant.session_key == client.session.session_key
    assert "All of them together may cost 80.50. It ends with this session." in done
    assert "You lent them close_ticket, mail_supplier, refund, reopen_ticket, runs, until" in done


def test_a_form_untouched_lends_without_a_limit_and_for_the_longest(
    refunds: Agent, house: House, sign_in: SignIn, settings: Settings
) -> None:
    send(sign_in(house.operator), rows(1))

    (grant,) = Grant.objects.all()
    assert (grant.budget, grant.session_key) == (None, "")
    assert grant.expires_at - grant.lent_at == settings.HANDOFF_DURATIONS.grant_stands


def test_terms_that_cannot_be_lent_are_refused_and_stay_as_typed(
    refunds: Agent, house: House, sign_in: SignIn
) -> None:
    client = sign_in(house.operator)
    form = {**form_of(read(client.get("/refunds/start/"))).sends(), "agent": str(refunds.pk)}
    typed = {"budget": "12,50 EUR", "lasts": "8", "bound": "session"}
    for wrong, fields in (
        (typed, ["budget"]),
        ({**typed, "lasts": "99999"}, ["budget", "lasts"]),
        ({**typed, "bound": "x"}, ["budget", "bound"]),
    ):
        answer = send(client, rows(1), {**form, **wrong})
        links = [a.attrs["href"] for a in read(answer).part("errors").all("a")]
        assert (answer.status_code, links) == (422, [f"#field-{name}" for name in fields])
        assert read(answer).one("input", name="budget").attrs["value"] == "12,50 EUR"

    page = read(send(client, rows(1) + "x\n", {**form, **typed, "budget": "5.00"}))
    chosen = [x.attrs["value"] for x in page.part("lending").all("option") if "selected" in x.attrs]
    assert page.one("input", name="budget").attrs["value"] == "5.00"
    assert chosen == ["8"] and "checked" in page.one("input", value="session").attrs
    assert (Run.objects.count(), Grant.objects.count()) == (0, 0)


def test_nothing_is_started_while_nobody_can_say_what_limits_it(
    refunds: Agent, house: House, sign_in: SignIn, settings: Settings
) -> None:
    settings.HANDOFF_CONFIGURATION = "/nowhere/limits.json"
    answer = send(sign_in(house.operator), rows(2))
    said = read(answer).part("errors").text
    assert answer.status_code == 409
    assert "/nowhere/limits.json, which could not be asked: The file cannot be read" in said
    assert (Run.objects.count(), Grant.objects.count()) == (0, 0)


def test_no_file_at_all(refunds: Agent, house: House, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    form = {**form_of(read(client.get("/refunds/start/"))).sends(), "agent": str(refunds.pk)}

    answer = client.post("/refunds/start/", form)

    assert answer.status_code == 422
    assert "Choose a file. Nothing was started." in read(answer).part("errors").text


def test_only_those_who_may_start(refunds: Agent, house: House, sign_in: SignIn) -> None:
    for person in (house.viewer, house.stranger):
        client = sign_in(person)
        assert not read(client.get("/refunds/start/")).one("main").all("form")
        form = {"agent": str(refunds.pk), "submission": "1" * 32}
        assert send(client, rows(1), form).status_code == 403
    assert "Operator" in read(sign_in(house.viewer).get("/refunds/start/")).one("main").text
    assert Run.objects.count() == 0


def test_a_large_file_starts_in_reasonable_time(refunds: Agent, house: House, sign_in: SignIn) -> None:
    began = time.monotonic()

    answer = send(sign_in(house.operator), rows(100), follow=True)

    assert "100 runs were started." in read(answer).part("result").text
    assert time.monotonic() - began < 10


def test_how_far_an_upload_is_can_be_asked_while_it_runs(
    refunds: Agent, house: House, sign_in: SignIn
) -> None:
    client, submission = sign_in(house.operator), uuid4()
    address = f"/refunds/start/progress/?submission={submission}"
    assert client.get(address).status_code == 204

    with progress.watched(str(house.operator.pk), submission) as told:
        told(250, 10_000)
        assert client.get(address).content.decode().startswith("250 of 10000 rows.")
        assert sign_in(house.viewer).get(address).status_code == 204

    assert client.get(address).status_code == 204


def test_an_upload_says_how_far_it_is(
    refunds: Agent, house: House, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = sign_in(house.operator)
    form = {**form_of(read(client.get("/refunds/start/"))).sends(), "agent": str(refunds.pk)}
    said: list[tuple[int, int] | None] = []

    def looking(**arguments: Any) -> Any:
        started = start_from_csv(**arguments)
        said.append(progress.of(str(house.operator.pk), UUID(form["submission"])))
        return started

    monkeypatch.setattr(views, "start_from_csv", looking)
    send(client, rows(2), form)

    assert said == [(2, 2)]
