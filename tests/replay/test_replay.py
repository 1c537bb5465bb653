"""Diagnostic replay: every event in turn, the record against what is recomputed, and no way to change anything."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.db.utils import InternalError

from runs.ledger import load
from runs.models import Event, Run
from runs.replay import read_only, replay
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import House, advance


@pytest.fixture
def run(house: House, world: World) -> Run:
    """A run whose payment is in doubt."""
    run = house.approved()
    world.answers, world.outage = ["lost"], "the bank is closed"
    advance(run)
    return run


def rewrite(run: Run, seq: int, **columns: object) -> None:
    """Change a stored event as only the owner of the tables could."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        Event.objects.filter(run_id=run.pk, seq=seq).update(**columns)
        cursor.execute("SET session_replication_role = origin")


def test_every_event_can_be_stepped_through_and_agrees(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.viewer)
    address = f"/runs/{run.pk}/replay/"
    url, seen = address + "?seq=1", []
    while url:
        page = read(client.get(url)).one("main")
        assert page.part("replay-check").text.startswith("Hash ok. Recorded state = recomputed state:"), url
        seen.append(page.part("stepper").one("input", name="seq").attrs["value"])
        slider = page.part("slide").one("input", type="range").attrs
        assert (slider["min"], slider["max"], slider["value"]) == ("1", str(load(run.pk).seq), seen[-1])
        onward = page.all("a", rel="next")
        url = address + onward[0].attrs["href"] if onward else ""
    assert seen == [str(n) for n in range(1, load(run.pk).seq + 1)]


def test_the_last_event_shows_the_state_of_the_run_page(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.viewer)

    page = read(client.get(f"/runs/{run.pk}/replay/"))

    state = page.part("state-after").text
    assert "Unknown outcome" in state and "v1, 0 of 2 steps done" in state and "B-" not in state
    link = read(client.get(f"/runs/{run.pk}/")).one("main").all("a", href=f"/runs/{run.pk}/replay/")
    assert [x.text for x in link] == ["Replay"]


def test_a_step_says_what_the_event_changed(house: House, run: Run, sign_in: SignIn) -> None:
    intent = Event.objects.get(run_id=run.pk, type="EffectIntended").seq
    page = read(sign_in(house.viewer).get(f"/runs/{run.pk}/replay/?seq={intent}"))

    assert "E-1 (pay 250.00 EUR for order 2000, cannot be undone) Not sent" in page.part("changed").text
    assert "In flight, no receipt yet" in page.part("changed").text
    assert '"operation_id": "pay:2000"' in page.part("body").text


def test_nothing_on_the_page_sends(house: House, run: Run, sign_in: SignIn) -> None:
    page = read(sign_in(house.viewer).get(f"/runs/{run.pk}/replay/"))

    # One that only closes the dialog of the keys sends nothing either.
    assert sorted(form.attrs["method"] for form in page.all("form")) == ["dialog", "get", "get", "get"]
    assert "hx-post" not in sign_in(house.viewer).get(f"/runs/{run.pk}/replay/").content.decode()
    assert page.part("replay").text.startswith("Replay Nothing on this page can change the run.")


def test_jumps_lead_to_the_stop_and_the_first_unknown(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.viewer)
    page = read(client.get(f"/runs/{run.pk}/replay/?seq=1"))
    unknown = Event.objects.filter(run_id=run.pk, state_after="unknown").earliest("seq").seq

    links = {x.text: urlsplit(x.attrs["href"]).query for x in page.part("stepper").all("a")}

    assert links["first unknown"] == f"seq={unknown}"
    assert "First" not in links and links["Last"] == f"seq={load(run.pk).seq}"


@pytest.mark.parametrize("seq", ["0", "99999", "-1", "x", "1e3", ""])
def test_any_number_is_an_event(house: House, run: Run, sign_in: SignIn, seq: str) -> None:
    assert sign_in(house.viewer).get(f"/runs/{run.pk}/replay/", {"seq": seq}).status_code == 200


def test_the_transaction_refuses_writes(run: Run) -> None:
    with pytest.raises(InternalError, match="read-only"), read_only():
        Run.objects.filter(pk=run.pk).update(goal="another")


def test_a_record_that_differs_is_named_and_the_viewer_goes_on(
    house: House, run: Run, sign_in: SignIn
) -> None:
    kept = Event.objects.get(run_id=run.pk, seq=3)
    rewrite(run, 3, state_after="executing")
    client = sign_in(house.viewer)

    page = read(client.get(f"/runs/{run.pk}/replay/"))
    assert "Recorded state differs from recomputed state from event 3 on." in page.one("main").text
    assert "The chain of hashes is broken at event 3." in page.one("main").text
    third = read(client.get(f"/runs/{run.pk}/replay/?seq=3"))
    assert "Recorded: Executing" in third.part("replay-check").text
    assert "The hash does not match." in third.part("replay-check").text
    rewrite(run, 3, state_after=kept.state_after)


def test_a_log_that_cannot_be_read_is_shown_up_to_there(house: House, run: Run, sign_in: SignIn) -> None:
    kept = Event.objects.get(run_id=run.pk, seq=4)
    rewrite(run, 4, version=99)
    client = sign_in(house.viewer)

    page = read(client.get(f"/runs/{run.pk}/replay/?seq=4")).one("main")
    assert "This version cannot reduce the log from event 4 on" in page.text
    assert "which this build does not know" in page.text
    assert "The state could not be recomputed." in page.part("replay-check").text
    assert "Not known" in page.part("changed").text and page.part("body").all("pre")
    readable = read(client.get(f"/runs/{run.pk}/replay/?seq=3")).one("main")
    assert "Hash ok. Recorded state = recomputed state" in readable.part("replay-check").text
    rewrite(run, 4, version=kept.version)


def test_a_missing_event_is_stepped_over(run: Run) -> None:
    kept = Event.objects.get(run_id=run.pk, seq=4)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("DELETE FROM runs_event WHERE run_id = %s AND seq = 4", [run.pk])
    found = replay(run.pk, seq=4)
    kept.save(force_insert=True)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = origin")

    assert found is not None
    assert (found.step.seq, found.steps[found.place + 1].seq, found.broken_at) == (3, 5, 5)


def test_a_stranger_finds_nothing(house: House, run: Run, sign_in: SignIn) -> None:
    assert sign_in(house.stranger).get(f"/runs/{run.pk}/replay/").status_code == 404


def test_no_other_replay_shares_its_code() -> None:
    """Diagnostic replay, re-reduction and restart meet in the reducer only."""
    for module, others in (
        ("replay", ("rereduction", "actions")),
        ("rereduction", ("runs.replay", "actions")),
    ):
        imports = [x for x in Path(f"runs/{module}.py").read_text().splitlines() if x.startswith("from")]
        assert not [line for line in imports for other in others if other in line]
