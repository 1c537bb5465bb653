"""Who works on a run, and notes on it: what people tell each other, which moves no run."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from accounts.models import User
from accounts.rights import Right, withdraw_right
from runs import actions
from runs.access import NotPermitted, RunNotFound
from runs.actions import Worked
from runs.clock import database_now
from runs.ledger import load
from runs.limits import LONGEST_TEXT
from runs.machine.decide import ConclusionRefused
from runs.machine.transitions import Refused
from runs.models import Note, Run, Working
from runs.working import Workers, workers_of
from tests.fixtures.clock import Clock
from tests.people import House, assert_replays
from tests.runs.test_claims import at_once

MINUTE = timedelta(minutes=1)


@pytest.fixture
def run(house: House) -> Run:
    return house.waiting()


def claim(person: User, run: Run, *, over: bool = False) -> str:
    """Claim the run; what that did."""
    done = actions.claim_run(person=person, run_id=run.pk, submission=uuid4(), over=over)
    return str(done.result["outcome"])


def release(person: User, run: Run) -> str:
    done = actions.release_run(person=person, run_id=run.pk, submission=uuid4())
    return str(done.result["outcome"])


def assign(by: User, run: Run, to: User | None) -> str:
    done = actions.assign_run(person=by, run_id=run.pk, to=to, submission=uuid4())
    return str(done.result["outcome"])


def note(person: User, run: Run, text: str = "the supplier moved") -> None:
    actions.note_run(person=person, run_id=run.pk, text=text, submission=uuid4())


def now_working(run: Run) -> Workers:
    return workers_of(run.pk, database_now())


def claimer(run: Run) -> str:
    found = now_working(run).claim
    return found.person.shown_name if found else ""


def test_a_claim_says_who_works_on_it_and_blocks_nobody(house: House, run: Run) -> None:
    assert claim(house.viewer, run) == Worked.CLAIMED

    assert claim(house.approver, run) == Worked.HELD and claimer(run) == "Viewer"
    assert release(house.approver, run) == Worked.HELD and claimer(run) == "Viewer"
    house.decide(run, house.approver)

    assert claim(house.approver, run, over=True) == Worked.TAKEN_OVER and claimer(run) == "Approver"
    assert release(house.approver, run) == Worked.RELEASED and claimer(run) == ""
    assert release(house.approver, run) == Worked.NOT_YOURS


def test_a_claim_lapses_unless_its_person_does_something_about_the_run(
    house: House, run: Run, clock: Clock
) -> None:
    claim(house.viewer, run)
    clock.move(10 * MINUTE)
    note(house.approver, run)
    note(house.viewer, run)
    clock.move(14 * MINUTE)
    assert claimer(run) == "Viewer"

    clock.move(MINUTE)
    assert claimer(run) == ""
    assert claim(house.approver, run) == Worked.CLAIMED and claimer(run) == "Approver"

    (old,) = Working.objects.filter(person=house.viewer)
    assert old.ended_at == old.active_at + 15 * MINUTE
    assert_replays(run)


def test_what_people_tell_each_other_is_no_event(house: House, run: Run) -> None:
    before = load(run.pk)

    claim(house.operator, run)
    note(house.viewer, run)
    assign(house.operator, run, house.approver)
    release(house.operator, run)

    assert assert_replays(run) == before


def test_one_form_does_one_thing_however_often_it_is_sent(house: House, run: Run) -> None:
    form = uuid4()
    for _ in range(2):
        actions.note_run(person=house.viewer, run_id=run.pk, text="once", submission=form)
    assert Note.objects.count() == 1

    with pytest.raises(Refused):
        actions.claim_run(person=house.viewer, run_id=run.pk, submission=form)
    assert claimer(run) == ""


def test_of_four_people_who_claim_a_run_at_once_one_works_on_it(house: House, run: Run) -> None:
    people = [house.operator, house.approver, house.second, house.viewer]
    waiting = iter(people)

    got = at_once(lambda: claim(next(waiting), run), threads=len(people))

    assert sorted(got) == [Worked.CLAIMED, *[Worked.HELD] * 3]
    assert Working.objects.count() == 1


def test_a_form_sent_four_times_at_once_keeps_one_note(house: House, run: Run) -> None:
    form = uuid4()

    got = at_once(
        lambda: actions.note_run(person=house.viewer, run_id=run.pk, text="once", submission=form), threads=4
    )

    assert Note.objects.count() == 1 and {done.pk for done in got} == {form}


def test_a_run_is_assigned_to_whom_can_do_something_there(house: House, run: Run) -> None:
    assert [person.shown_name for person in actions.assignable(run)] == ["Approver", "Operator", "Second"]

    assert assign(house.operator, run, house.approver) == Worked.ASSIGNED
    assert assign(house.second, run, house.approver) == Worked.SAME
    assert assign(house.second, run, house.operator) == Worked.ASSIGNED
    found = now_working(run).assignment
    assert found and (found.person, found.by) == (house.operator, house.second)

    with pytest.raises(ConclusionRefused, match="assignee_may_not"):
        assign(house.operator, run, house.viewer)
    with pytest.raises(NotPermitted):
        assign(house.viewer, run, house.operator)
    assert now_working(run).assignment == found

    assert assign(house.operator, run, None) == Worked.UNASSIGNED
    assert now_working(run).assignment is None


def test_nobody_says_anything_about_a_run_that_they_do_not_see(house: House, run: Run) -> None:
    withdraw_right(to=house.viewer, right=Right.VIEW_RUNS, obj=house.agent, actor=None, now=database_now())
    for person in (house.stranger, house.viewer):
        for tell in (claim, release, note):
            with pytest.raises(RunNotFound):
                tell(person, run)
    with pytest.raises(ConclusionRefused):
        assign(house.operator, run, house.stranger)
    assert not Note.objects.exists() and not Working.objects.exists()


CHANGES = (
    "UPDATE runs_note SET text = 'another'",
    "DELETE FROM runs_note",
    "DELETE FROM runs_working",
    "UPDATE runs_working SET person_id = %(other)s, by_id = %(other)s",
    "UPDATE runs_working SET at = at - interval '1 hour'",
    "UPDATE runs_working SET active_at = active_at - interval '1 second'",
    "UPDATE runs_working SET ended_at = active_at - interval '1 second'",
    "UPDATE runs_working SET by_id = %(other)s",
    "INSERT INTO runs_working (tenant_id, run_id, kind, person_id, by_id, at, active_at)"
    " SELECT tenant_id, run_id, kind, %(other)s, %(other)s, at, at FROM runs_working",
    "INSERT INTO runs_working (tenant_id, run_id, kind, person_id, by_id, at, active_at, ended_at)"
    " SELECT %(foreign)s, run_id, kind, person_id, by_id, at, at, at FROM runs_working",
    "INSERT INTO runs_note (tenant_id, run_id, person_id, text, at, origin)"
    " SELECT %(foreign)s, run_id, person_id, text, at, origin FROM runs_note",
    "INSERT INTO runs_note (tenant_id, run_id, person_id, text, at, origin)"
    " SELECT tenant_id, run_id, person_id, ' ', at, origin FROM runs_note",
    "INSERT INTO runs_note (tenant_id, run_id, person_id, text, at, origin)"
    " SELECT tenant_id, run_id, person_id, repeat('x', %(longest)s + 1), at, origin FROM runs_note",
)


@pytest.mark.parametrize("change", CHANGES)
def test_the_database_keeps_them_as_they_were(house: House, run: Run, change: str) -> None:
    claim(house.viewer, run)
    note(house.viewer, run)
    facts = {"other": house.second.pk, "foreign": house.stranger.memberships.get().tenant_id}

    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(change, {**facts, "longest": LONGEST_TEXT})


def test_what_ended_stays_ended(house: House, run: Run) -> None:
    claim(house.viewer, run)
    release(house.viewer, run)

    with pytest.raises(IntegrityError), transaction.atomic():
        Working.objects.update(ended_at=None)
