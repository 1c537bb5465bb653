"""Who takes over without asking anyone: the five questions, and what must never be sent again, in each rendering."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from msgspec.structs import replace

from runs.ledger import load
from runs.machine import handoff_document as h
from runs.machine import state as s
from runs.models import Run
from runs.pages.handoff_markdown import escaped, fenced
from tests.machine.lives import T0, observed, planning
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import House, advance

HOSTILE = "[pay](http://x.example) <img src=x onerror=alert(1)> www.x.example ```\n# head \u202e @all $x$"


@pytest.fixture
def doubtful(house: House, world: World) -> Run:
    """Approved and paid, once; whether the supplier was told nobody knows, and the answer is not there to be had."""
    run = house.approved()
    world.answers, world.outage = ["", "silent"], "closed"
    advance(run)
    return run


def printed(run: Run, **options: object) -> str:
    out = StringIO()
    call_command("handoff", run.pk, stdout=out, **options)
    return out.getvalue()


def test_the_five_questions_are_answered(house: House, doubtful: Run) -> None:
    state, found = load(doubtful.pk), json.loads(printed(doubtful, json=True, person="operator"))
    paid, told = state.effects[1], state.effects[2]
    assert (found["asked"]["original"], found["asked"]["committed"]) == ("Pay order 2000",) * 2
    assert [(x["id"], x["reference"], x["key"]) for x in found["happened"]] == [
        ("E-1", "ref-pay:2000", paid.key)
    ]
    assert [(x["id"], x["key"], x["arguments"]["order"]) for x in found["may_have_happened"]] == [
        ("E-2", told.key, "2000")
    ]
    assert [(x["id"], x["source_ref"], x["accepted_seq"]) for x in found["not_allowed"]] == [
        ("C-1", "payer", 1)
    ]
    assert (found["next"]["action"], found["next"]["effect"]) == ("ask", "E-2")
    assert "send_again" in found["next"]["not_safe"]
    assert [(x["id"], x["owner"], x["open"]) for x in found["obligations"]] == [
        ("B-1", "step tell:2000", True)
    ]
    assert [(x["what"], x["by"], x["reason"]) for x in found["decisions"]] == [
        ("start", "Operator", ""), ("approve", "Approver", "as was agreed"),
    ]  # fmt: skip
    (never,) = found["never_send_again"]
    assert (never["id"], never["why"]) == ("E-1", "key_ends")


def test_who_may_take_the_next_step_is_told_to_whom_it_concerns(house: House) -> None:
    run = house.waiting()
    asked = {who: json.loads(printed(run, json=True, person=who))["next"] for who in ("approver", "viewer")}
    assert [x["you_may"] for x in asked.values()] == [True, False]
    assert json.loads(printed(run, json=True))["next"]["you_may"] is None
    assert "You may not take it: it takes the right" in printed(run, person="viewer")
    with pytest.raises(CommandError, match="no run"):
        printed(run, person="stranger")


def test_an_effect_whose_key_is_not_honoured_is_never_to_be_sent_again(house: House, world: World) -> None:
    run = house.start(tool="pay_once")
    advance(run)
    state = load(run.pk)
    found = h.document(state, state.at)
    assert [(x.id, x.why, x.until) for x in found.never_send_again] == [
        ("E-1", "no_key", None), ("E-2", "key_ends", state.effects[2].sends[0].at + timedelta(hours=1)),
    ]  # fmt: skip
    assert "honours no key. A second send is a second effect." in printed(run)
    later = h.document(state, state.at + timedelta(hours=2))
    assert [x.why for x in later.never_send_again] == ["no_key", "key_ends"]


def test_what_is_owed_late_and_what_is_out_of_date_is_said() -> None:
    state = planning().take(observed()).state
    owed = s.Obligation(number=1, text="tell", by="tell:7", opened_seq=1, opened_at=T0, due_at=T0)
    late = h.document(replace(state, obligations=(owed,)), T0 + timedelta(days=1))
    assert [(x.open, x.overdue) for x in late.obligations] == [(True, True)]
    assert late.observations and not any(x.fresh for x in late.observations)


def test_all_renderings_are_there_for_who_may_see_the_run(
    house: House, doubtful: Run, sign_in: SignIn
) -> None:
    client, address = sign_in(house.viewer), f"/runs/{doubtful.pk}/handoff"
    page = read(client.get(f"{address}/"))
    assert "E-1 pay 250.00 EUR for order 2000: it happened." in page.part("handoff-never").text
    assert "Approver approved plan v1. “as was agreed”" in page.part("handoff-decisions").text
    found = client.get(f"{address}.json")
    assert found["Content-Type"] == "application/json" and "schemas/handoff-1" in found["Link"]
    assert json.loads(found.content)["run"] == doubtful.pk
    text = client.get(f"{address}/?format=markdown")
    assert text["Content-Type"].startswith("text/markdown")
    assert "## What may have happened\n\n- E-2 tell the supplier" in text.content.decode()
    for kind in ("/", ".json", "/?format=markdown"):
        assert sign_in(house.stranger).get(f"{address}{kind}").status_code == 404


def test_hostile_text_is_text_in_markdown(house: House) -> None:
    run = house.start(HOSTILE)
    text = printed(run)
    outside_code = [line for line in text.splitlines() if not line.startswith("  ")]
    assert not [x for x in outside_code if "](" in x.replace("\\]", "") or "<img" in x.replace("\\<", "")]
    assert "\u202e" not in text and "U+202E" in text
    assert [x for x in outside_code if x.startswith("# ")] == [outside_code[0]]
    for part in (
        "\\[pay\\](http\\://x.example)",
        "\\<img",
        "www\\.x.example",
        "\\@all",
        "\\$x\\$",
        "\\`\\`\\`",
    ):
        assert part in text, part


def test_a_fence_is_longer_than_any_inside() -> None:
    block = fenced('{"a":"```` x"}').splitlines()
    assert block[0] == "  `````json" and block[-1] == "  `````"
    assert escaped("a\nb") == "a ↵ b"
    assert (
        escaped("run_7Q at 17:01:55, _x_ mailto:a http://b")
        == r"run_7Q at 17:01:55, \_x\_ mailto\:a http\://b"
    )
