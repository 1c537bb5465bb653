"""A revalidation looks at the chain since it was last whole; what lies before is found by the whole check."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from runs import facts, verified
from runs.ledger import Link, chain_problem, load
from runs.machine.revalidate import failed, report
from runs.models import Event, Run
from runs.rereduction import differences
from tests.outside import World
from tests.people import House


@contextmanager
def damaged(run: Run, seq: int) -> Iterator[None]:
    """Meanwhile an event is another, as somebody who owns the database could make it."""
    name = Event.objects.get(run=run, seq=seq).actor_name
    _rename(run, seq, "somebody else")
    yield
    _rename(run, seq, name)


def _rename(run: Run, seq: int, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE runs_event DISABLE TRIGGER USER")
        cursor.execute(
            "UPDATE runs_event SET actor_name = %s WHERE run_id = %s AND seq = %s", [name, run.pk, seq]
        )
        cursor.execute("ALTER TABLE runs_event ENABLE TRIGGER USER")


def logged(run: Run) -> str:
    """What the check of the log says in a revalidation."""
    state = load(run.pk)
    known = facts.gather(state, Run.objects.get(pk=run.pk), None, {}, state.at)
    made = {check.name: check for check in report(state, known, state.at) if not check.subject}
    assert made["log"].passed is (made["log"] not in failed((made["log"],)))
    return made["log"].now


def test_what_came_since_the_chain_was_last_whole_is_checked_and_what_lies_before_by_the_whole_check(
    house: House, world: World
) -> None:
    run = house.waiting()
    verified._whole.clear()
    assert logged(run) == ""
    remembered = verified._whole[run.pk].seq
    assert remembered == Event.objects.filter(run=run).count() > 3

    with damaged(run, 2):
        assert logged(run) == "", "it lies before what was found whole"
        assert chain_problem(run.pk) == "event 2 is not as it was stored"
        assert differences(run.pk)[0] == "event 2 is not as it was stored"
        verified._whole.clear()
        assert logged(run) == "event 2 is not as it was stored", (
            "a process that comes to it looks at all of it"
        )


def test_the_event_that_is_remembered_is_compared_too(house: House, world: World) -> None:
    run = house.waiting()
    verified._whole.clear()
    assert logged(run) == ""
    with damaged(run, verified._whole[run.pk].seq):
        assert "is not as it was stored" in logged(run)


def test_what_is_remembered_of_another_history_is_no_damage(house: House, world: World) -> None:
    """As after a restore of the database beside a living worker."""
    run = house.waiting()
    for link in (Link(99, b"later"), Link(2, b"other")):
        verified._whole[run.pk] = link
        assert logged(run) == ""


def test_the_run_that_was_looked_at_longest_ago_is_forgotten_first(house: House, world: World) -> None:
    first, last = house.waiting(), house.start("7")
    verified._whole.clear()
    verified._whole.update({f"run_{n}": Link(1, b"") for n in range(verified.REMEMBERED - 1)})
    assert (logged(first), logged(last)) == ("", "")
    assert len(verified._whole) == verified.REMEMBERED
    assert {first.pk, last.pk} < verified._whole.keys() and "run_0" not in verified._whole
