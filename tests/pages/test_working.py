"""Who works on a run, and notes on it, as people see and say it in their browsers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from accounts.rights import Right, grant_right
from approvals.models import Attempt
from runs import actions
from runs.clock import database_now
from runs.ledger import load
from runs.limits import LONGEST_TEXT
from runs.models import Note, Run
from tests.fixtures.clock import Clock
from tests.pages.conftest import SignIn
from tests.pages.reading import Node, form_of, read
from tests.pages.test_hidden import leaks, secretive, started
from tests.pages.test_review import address, approval
from tests.people import House, assert_replays
from tests.runs.test_ledger import sql, tampering
from tests.secretive import ACCOUNT

__all__ = ["secretive"]
HOSTILE = "\u202e<script>alert(1)</script>\u200b see **this** https://example.com"


@pytest.fixture
def run(house: House) -> Run:
    return house.waiting()


def page_of(client: Client, run: Run, name: str = "run") -> Node:
    return read(client.get(reverse(name, args=[run.pk])))


def press(client: Client, run: Run, label: str) -> Node:
    """Press that button of the part about who works on the run; the page that it leads to."""
    form = form_of(page_of(client, run), testid="working")
    (button,) = [x for x in form.all("button") if x.text == label]
    sent = {**form.sends(), "do": button.attrs["value"]}
    return read(client.post(form.attrs["action"], sent, follow=True))


def add_note(client: Client, run: Run, text: str) -> Any:
    form = form_of(page_of(client, run, "run-notes"))
    return client.post(reverse("run-notes", args=[run.pk]), {**form.sends(), "text": text}, follow=True)


def working(client: Client, run: Run) -> str:
    return page_of(client, run).part("working").text


def test_a_run_is_claimed_released_and_taken_over(house: House, run: Run, sign_in: SignIn) -> None:
    viewer, approver = sign_in(house.viewer), sign_in(house.approver)
    assert working(viewer, run).startswith("Working on it: nobody Claim")

    page = press(viewer, run, "Claim")
    assert "You claimed this run." in page.part("result").text
    assert page.part("working").text.startswith("Working on it: you")
    seen = working(approver, run)
    assert seen.startswith("Working on it: Viewer, ") and " s Take over" in seen

    assert "You took this run over" in press(approver, run, "Take over").part("result").text
    assert working(viewer, run).startswith("Working on it: Approver")
    assert "You released this run." in press(approver, run, "Release").part("result").text
    assert working(viewer, run).startswith("Working on it: nobody")
    assert_replays(run)


def test_who_comes_second_is_told_and_takes_nothing(house: House, run: Run, sign_in: SignIn) -> None:
    viewer, approver = sign_in(house.viewer), sign_in(house.approver)
    late = form_of(page_of(approver, run), testid="working").sends()
    press(viewer, run, "Claim")

    for _ in range(2):
        page = read(approver.post(reverse("run-claim", args=[run.pk]), {**late, "do": "claim"}, follow=True))
        assert "Somebody else works on this run" in page.part("result").text
        assert page.part("working").text.startswith("Working on it: Viewer")


def test_a_page_that_decides_names_who_works_on_it_and_keeps_nobody_from_deciding(
    house: House, run: Run, sign_in: SignIn
) -> None:
    press(sign_in(house.viewer), run, "Claim")
    client = sign_in(house.approver)

    notice = read(client.get(address(run))).part("claimed")

    assert notice.text.startswith("Viewer works on this run: last active")
    assert [a.attrs["href"] for a in notice.all("a")] == [reverse("run-notes", args=[run.pk])]
    assert client.post(address(run), approval(client, run)).status_code == 302
    assert not read(sign_in(house.viewer).get(reverse("run-answer", args=[run.pk]))).all(
        data_testid="claimed"
    )


def test_opening_a_page_that_decides_renews_ones_own_claim(
    house: House, run: Run, sign_in: SignIn, clock: Clock
) -> None:
    client = sign_in(house.approver)
    press(client, run, "Claim")
    clock.move(timedelta(minutes=14))
    client.get(address(run))
    clock.move(timedelta(minutes=14))
    client.get(reverse("run", args=[run.pk]))
    assert working(client, run).startswith("Working on it: you")

    clock.move(timedelta(minutes=1))
    assert working(client, run).startswith("Working on it: nobody")


def test_a_note_or_a_claim_between_opening_and_sending_is_no_conflict(
    house: House, run: Run, sign_in: SignIn
) -> None:
    client, before = sign_in(house.approver), load(run.pk)
    sent = approval(client, run)

    press(sign_in(house.viewer), run, "Claim")
    add_note(sign_in(house.viewer), run, "ask the supplier first")
    actions.assign_run(person=house.operator, run_id=run.pk, to=house.second, submission=uuid4())
    assert load(run.pk) == before

    assert client.post(address(run), sent).status_code == 302
    assert assert_replays(run).seq > before.seq


def test_a_note_is_shown_as_it_was_written_and_does_nothing(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.viewer)

    page = read(add_note(client, run, f"  {HOSTILE}\nsecond line  "))

    assert "Your note was kept." in page.part("result").text
    for shown in (page, page_of(sign_in(house.approver), run)):
        (note,) = shown.all(data_testid="note")
        assert "Written by Viewer" in note.text and "<script>alert(1)</script>" in note.text
        assert "U+202E" in note.text and "U+200B" in note.text
        assert not note.all("script") and not note.all("a")
    assert Note.objects.get().text == f"{HOSTILE}\nsecond line"
    assert page_of(sign_in(house.stranger), run, "run-notes").all(data_testid="note") == []


def test_a_note_that_cannot_be_kept_stays_in_the_form(house: House, run: Run, sign_in: SignIn) -> None:
    client, long = sign_in(house.viewer), "x" * (LONGEST_TEXT + 1)

    answer = add_note(client, run, long)

    assert answer.status_code == 422 and form_of(read(answer)).sends()["text"] == long
    assert add_note(client, run, " ").status_code == 422
    assert add_note(client, run, long[1:]).status_code == 200
    assert Note.objects.count() == 1
    assert set(Attempt.objects.values_list("action", "refusal")) == {("note", "form")}


def test_a_run_is_assigned_from_its_page(house: House, run: Run, sign_in: SignIn) -> None:
    client, url = sign_in(house.operator), reverse("run-assign", args=[run.pk])
    page = read(client.get(url))
    labels = [option.text for option in page.one("main").one("select").all("option")]
    assert labels == ["Choose", "Approver", "Operator", "Second", "Nobody"]

    form = {**form_of(page).sends(), "to": str(house.second.pk)}
    page = read(client.post(url, form, follow=True))

    assert "The run was assigned." in page.part("result").text
    assert page.part("assigned").text.startswith("Assigned to: Second by Operator")
    for sent in ("", "somebody", str(house.viewer.pk), str(house.stranger.pk)):
        assert client.post(url, {**form, "submission": uuid4(), "to": sent}).status_code == 422
    assert sign_in(house.viewer).post(url, {**form, "submission": uuid4()}).status_code == 403
    assert "You may not assign this run" in read(sign_in(house.viewer).get(url)).part("why-not").text
    assert {*Attempt.objects.values_list("action", "refusal")} == {
        ("assign", "form"),
        ("assign", "not_allowed"),
    }


def told(client: Client, query: str = "") -> list[str]:
    return [x.text for x in read(client.get(reverse("audit") + query)).one("main").all("tr")[1:]]


def test_the_audit_log_tells_who_claimed_assigned_and_wrote(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    press(client, run, "Claim")
    add_note(client, run, HOSTILE)
    actions.assign_run(person=house.operator, run_id=run.pk, to=house.second, submission=uuid4())
    press(client, run, "Release")
    actions.release_run(person=house.operator, run_id=run.pk, submission=uuid4())

    entries = told(client, f"?run={run.pk}")

    said = ("released the run", "assigned the run to Second", "wrote a note on the run", "claimed the run")
    assert [next((x for x in said if x in entry), "") for entry in entries[:4]] == list(said)
    assert "released" not in "".join(entries[4:])
    (note,) = told(client, "?action=note")
    assert "<script>alert(1)</script>" in note and "U+202E" in note
    assert "Operator" not in "".join(told(sign_in(house.viewer)))


def test_what_is_hidden_of_a_run_is_hidden_in_notes_on_it(secretive: House, sign_in: SignIn) -> None:
    run = started(secretive)
    add_note(sign_in(secretive.operator), run, f"say {ACCOUNT} to the supplier")
    grant_right(
        to=secretive.viewer, right=Right.SEE_AUDIT, obj=secretive.tenant, actor=None, now=database_now()
    )

    for url in (*(reverse(name, args=[run.pk]) for name in ("run", "run-notes")), reverse("audit")):
        answer = sign_in(secretive.viewer).get(url)
        assert "to the supplier" in answer.content.decode() and leaks(answer) == []
        assert ACCOUNT in leaks(sign_in(secretive.operator).get(url))


def test_notes_are_there_where_the_log_cannot_be_read(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.viewer)
    sql("UPDATE runs_event SET body = NULL WHERE run_id = %s AND seq = 2", run.pk)

    press(client, run, "Claim")
    add_note(client, run, "its log is damaged, ask Kim")

    page = page_of(sign_in(house.approver), run)
    assert "ask Kim" in page.part("note").text
    assert page.part("working").text.startswith("Working on it: Viewer")
    with tampering():
        sql("DELETE FROM runs_event WHERE run_id = %s", run.pk)
        sql("UPDATE runs_run SET seq = 0 WHERE id = %s", run.pk)
