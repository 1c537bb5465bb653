"""Several runs at once: only what is harmless, each run by itself, with a line for each."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from accounts.rights import Right, withdraw_right
from approvals.models import Attempt
from runs import actions, agents
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import EffectStatus, State
from runs.models import Note, Run
from runs.working import workers_of
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.pages.test_run import stuck
from tests.people import House, assert_replays
from tests.runs.test_ledger import sql, tampering

NEVER = ("approve", "reject", "revoke", "cancel", "compensate", "restart")
NO_ANSWER = "No answer: E-1 the bank is closed. That it was asked is kept in the log."
Lines = list[tuple[str, str, str]]


def bar(client: Client, query: str = "?view=all") -> Node:
    return form_of(read(client.get(f"/inbox/{query}")), testid="bulk")


def choose(client: Client, do: str, runs: list[str], **more: Any) -> Any:
    """Select these runs in the inbox and press the button; the answer that it leads to."""
    form = bar(client)
    sent = {**form.sends(), "run": runs, "do": do, **more}
    return client.post(form.attrs["action"], sent, follow=True)


def lines(answer: Any) -> Lines:
    """Of each run of a result: its id, how it came, and why."""
    table = read(answer).part("lines")
    rows = [row for row in table.all("tr") if "data-line" in row.attrs]
    return [(row.attrs["data-line"], row.attrs["data-came"], row.all("td")[-1].text) for row in rows]


def test_only_what_is_harmless_is_offered_and_the_page_says_so(house: House, sign_in: SignIn) -> None:
    runs = [house.waiting(order).pk for order in "12"]
    client = sign_in(house.operator)
    page = read(client.get("/inbox/?view=all"))

    bulk = page.part("bulk")
    assert [b.text for b in bulk.all("button")] == [
        "Claim", "Release", "Assign…", "Add note…", "Ask systems for receipts"
    ]  # fmt: skip
    assert not any(word in bulk.text.lower() for word in NEVER)
    assert "are not done with several runs at once" in page.one("main").text
    boxes = page.all("input", name="run")
    assert sorted(box.attrs["value"] for box in boxes) == sorted(runs)
    assert {box.attrs["form"] for box in boxes} == {bulk.attrs["id"]}

    before = [load(run) for run in runs]
    for word in (*NEVER, "approve_plans", ""):
        assert choose(client, word, runs).status_code == 422
    assert [load(run) for run in runs] == before


def test_each_run_is_claimed_by_itself_and_has_a_line(house: House, sign_in: SignIn) -> None:
    free, held, mine = (house.waiting(order).pk for order in "123")
    actions.claim_run(person=house.second, run_id=held, submission=uuid4())
    actions.claim_run(person=house.viewer, run_id=mine, submission=uuid4())
    client = sign_in(house.viewer)

    answer = choose(client, "claim", [held, free, mine, "run_NEVERWAS0000", "%\u202e<b>", held])

    assert lines(answer) == [
        (held, "skipped", "Second works on it. Open it to take it over."),
        (free, "done", "You work on it now."),
        (mine, "done", "You worked on it before; your claim lasts from now."),
        ("run_NEVERWAS0000", "failed", "There is no such run that you can see."),
        ("%\u202e<b>", "failed", "There is no such run that you can see."),
    ]
    assert "2 done, 1 skipped, 2 failed." in read(answer).part("result").text
    assert "U+202E" in answer.content.decode() and "<b>" not in answer.content.decode()
    assert lines(choose(client, "release", [held, free, mine])) == [
        (held, "skipped", "Second works on it. Open it to take it over."),
        (free, "done", "You do not work on it any more."),
        (mine, "done", "You do not work on it any more."),
    ]


def test_a_form_that_is_sent_twice_does_it_once_and_says_the_same(house: House, sign_in: SignIn) -> None:
    runs, client = [house.waiting(order).pk for order in "12"], sign_in(house.viewer)
    page = choose(client, "note", runs)
    assert page.status_code == 200 and not Note.objects.exists()
    assert [box.attrs["value"] for box in form_of(read(page)).all("input", name="run")] == runs
    sent = {**form_of(read(page)).sends(), "run": runs, "text": "the bank is closed on Monday"}

    answers = [client.post(reverse("inbox-together"), sent, follow=True) for _ in range(2)]

    assert [lines(answer) for answer in answers] == [
        [(run, "done", "Your note was kept.") for run in runs]
    ] * 2
    assert sorted(Note.objects.values_list("run_id", flat=True)) == sorted(runs)
    refused = client.post(reverse("inbox-together"), {**sent, "submission": uuid4(), "text": " "})
    assert refused.status_code == 422 and "Enter what the next person should know." in read(refused).text
    assert Attempt.objects.get().action == "note"


def test_runs_are_assigned_where_that_person_can_do_something(house: House, sign_in: SignIn) -> None:
    runs, client = [house.waiting(order).pk for order in "12"], sign_in(house.approver)
    page = read(choose(client, "assign", runs))
    labels = [option.text for option in page.one("main").one("select").all("option")]
    assert labels == ["Choose", "Approver", "Operator", "Second", "Nobody"]
    sent: dict[str, Any] = {**form_of(page).sends(), "run": runs}

    done = client.post(reverse("inbox-together"), {**sent, "to": house.second.pk}, follow=True)

    assert lines(done) == [(run, "done", "It is assigned to Second.") for run in runs]
    viewer = sign_in(house.viewer)
    sent = {**sent, "submission": str(uuid4()), "to": str(house.operator.pk)}
    denied = lines(viewer.post(reverse("inbox-together"), sent, follow=True))
    assert [(run, came) for run, came, _why in denied] == [(run, "failed") for run in runs]
    assert all("does not have the right" in why for *_rest, why in denied)
    assert Attempt.objects.filter(action="assign", refusal="not_allowed", person=house.viewer).count() == 2
    assert all(
        found.assignment and found.assignment.person == house.second
        for found in (workers_of(run, database_now()) for run in runs)
    )


def test_systems_are_asked_and_nothing_is_sent_or_concluded(
    house: House, world: World, sign_in: SignIn
) -> None:
    doubtful, sure = stuck(house, world), house.waiting("3")
    client, sent = sign_in(house.operator), list(world.executed)

    assert lines(choose(client, "ask", [doubtful.pk, sure.pk])) == [
        (doubtful.pk, "failed", NO_ANSWER),
        (sure.pk, "skipped", "Nothing of it is unknown, so there is nothing to ask."),
    ]
    world.outage = ""
    (line,) = lines(choose(client, "ask", [doubtful.pk]))

    assert line[1:] == ("done", "The answer was stored as evidence: E-1. Nothing was concluded.")
    state = assert_replays(doubtful)
    assert state.state is State.UNKNOWN and state.effects[1].status is EffectStatus.UNKNOWN
    assert world.executed == sent
    (line,) = lines(choose(sign_in(house.viewer), "ask", [doubtful.pk]))
    assert line[1] == "failed" and "does not have the right “Operate runs”" in line[2]


def test_a_line_says_why_a_system_was_not_asked(
    house: House, world: World, sign_in: SignIn, settings: Settings
) -> None:
    run, damaged, client = stuck(house, world), house.waiting("3"), sign_in(house.operator)
    asked, chosen = len(world.queries), [run.pk, damaged.pk]
    sql("UPDATE runs_event SET body = NULL WHERE run_id = %s AND seq = 2", damaged.pk)
    form = bar(client).sends()

    def why() -> list[tuple[str, str]]:
        sent = {**form, "submission": str(uuid4()), "run": chosen, "do": "ask"}
        return [line[1:] for line in lines(client.post(reverse("inbox-together"), sent, follow=True))]

    unreadable = ("failed", "Its log cannot be read by this version.")
    settings.HANDOFF_DURATIONS = replace(settings.HANDOFF_DURATIONS, tool_timeout=timedelta())
    assert why() == [("skipped", "The others took too long. Ask for this one again."), unreadable]
    settings.HANDOFF_AGENTS = []
    agents.registered.cache_clear()
    missing = ("skipped", "The agent’s version is not installed here, so nothing can be asked.")
    assert why() == [missing, unreadable]
    agents.registered.cache_clear()
    assert len(world.queries) == asked
    with tampering():
        sql("DELETE FROM runs_event WHERE run_id = %s", damaged.pk)
        sql("UPDATE runs_run SET seq = 0 WHERE id = %s", damaged.pk)


def test_no_more_than_a_page_and_no_less_than_one(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting("1"), sign_in(house.viewer)

    none, many = (
        choose(client, "claim", []),
        choose(client, "claim", [run.pk, *(f"run_{n}" for n in range(50))]),
    )

    assert (none.status_code, many.status_code) == (422, 422)
    assert "Select at least one run." in read(none).text and "Select at most 50 runs." in read(many).text
    assert workers_of(run.pk, database_now()).claim is None


def test_what_one_does_not_see_any_more_is_not_shown_in_ones_results(house: House, sign_in: SignIn) -> None:
    run, client = house.waiting("1"), sign_in(house.viewer)
    answer = choose(client, "claim", [run.pk])
    where, _status = answer.redirect_chain[-1]
    assert "order 1" in answer.content.decode()
    assert sign_in(house.approver).get(where).status_code == 302

    withdraw_right(to=house.viewer, right=Right.VIEW_RUNS, obj=house.agent, actor=None, now=database_now())

    answer = client.get(where)
    assert lines(answer) == [(run.pk, "failed", "There is no such run that you can see.")]
    assert "order 1" not in answer.content.decode()
    assert client.post("/inbox/together/", {"back": "https://evil.example"}).status_code == 422
    assert "evil" not in client.get("/inbox/together/?back=//evil.example", follow=True).content.decode()


def test_the_page_before_a_note_asks_as_much_for_many_runs(house: House, sign_in: SignIn) -> None:
    client, runs = sign_in(house.approver), [house.waiting(str(n)).pk for n in range(6)]
    asked = []
    for chosen in (runs[:1], runs, runs[:1], runs):
        with CaptureQueriesContext(connection) as queries:
            choose(client, "assign", chosen)
        asked.append(len(queries))
    assert asked[2] == asked[3]


def test_the_bar_is_in_the_list_of_all_runs_too_and_not_where_nothing_is_listed(
    house: House, sign_in: SignIn
) -> None:
    client = sign_in(house.viewer)
    assert read(client.get("/inbox/?view=all")).all(data_testid="bulk") == []
    run: Run = house.approved("1")
    assert bar(client, "?view=any").sends()["back"] == "?view=any"
    assert lines(choose_in(client, run)) == [(run.pk, "done", "You work on it now.")]


def choose_in(client: Client, run: Run) -> Any:
    form = bar(client, "?view=any")
    return client.post(form.attrs["action"], {**form.sends(), "run": [run.pk], "do": "claim"}, follow=True)
