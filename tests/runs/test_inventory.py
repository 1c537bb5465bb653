"""`manage.py artifacts`: what is lost is named, what is in use is never removed, summaries can be dropped."""

from __future__ import annotations

import os
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from runs import artifacts, inventory, summaries
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import State
from runs.models import Artifact, Run, Summary
from tests.outside import World
from tests.people import House, advance
from tests.runs.scripted import LOOK, Script, executed, plan


def told(*options: str) -> str:
    out = StringIO()
    call_command("artifacts", *options, stdout=out, stderr=out)
    return out.getvalue()


def file_of(row: Artifact | Summary) -> Path:
    return Path(artifacts.storage().path(row.location))


def age(path: Path, by: timedelta) -> None:
    then = database_now().timestamp() - by.total_seconds()
    os.utime(path, (then, then))


@pytest.fixture
def run(house: House, script: Script, world: World, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run that is over, with an artifact and a summary; nothing else stands in the storage."""
    monkeypatch.setattr(summaries, "EVERY", 2)
    for file in inventory.orphans():
        artifacts.storage().delete(file)
    script.proposals = [lambda view: LOOK, plan()]
    script.answer = executed({"log": "z" * 70_000})
    run = house.start()
    assert advance(run).state is State.SUCCEEDED
    return run


def test_where_all_is_well_it_says_so(run: Run) -> None:
    assert told("--check") == (
        "1 artifacts, 0 of them lost or changed; 1 summaries, 0 to be made again; 0 files that nothing points to.\n"
    )


def test_bytes_that_are_lost_or_changed_are_named(run: Run) -> None:
    row = Artifact.objects.get()
    file_of(row).write_bytes(b"other")
    with pytest.raises(CommandError, match="back from a copy"):
        told("--check")
    assert [line for line in inventory.look().lost if row.hash in line and "has other bytes" in line]
    file_of(row).unlink()
    assert "its file is gone" in inventory.look().lost[0]
    Artifact.objects.all().delete()
    (line,) = inventory.look().lost
    assert line == f"The artifact {row.hash} of {run.pk}, event {_tied(run)}, was never kept here."


def _tied(run: Run) -> int:
    return next(iter(load(run.pk).artifacts.values())).seq


def test_a_summary_that_is_lost_is_no_fault(run: Run) -> None:
    file_of(Summary.objects.get()).unlink()
    assert "1 summaries, 1 to be made again" in told("--check")


def test_the_sweep_takes_old_files_that_nothing_points_to_and_no_others(run: Run) -> None:
    begun = Path(artifacts.storage().path(artifacts.written("t", b"a crash left this a moment ago")))
    left = Path(artifacts.storage().path(artifacts.written("t", b"a crash left this long ago")))
    for path in (left, file_of(Artifact.objects.get()), file_of(Summary.objects.get())):
        age(path, timedelta(days=1, minutes=1))
    age(begun, timedelta(hours=23))
    assert "2 files that nothing points to" in told("--check")

    assert "1 files were removed" in told("--sweep")

    assert (begun.exists(), left.exists()) == (True, False)
    assert "1 artifacts, 0 of them lost" in told("--check")


def test_summaries_can_be_dropped_and_the_runs_stay_as_they_are(run: Run, script: Script) -> None:
    before, file = load(run.pk), file_of(Summary.objects.get())
    assert told("--drop-summaries", "run_0").startswith("0 summaries")
    assert told("--drop-summaries", run.pk).startswith("1 summaries were dropped")
    assert not Summary.objects.exists() and not file.exists()
    assert load(run.pk) == before
    assert told("--drop-summaries").startswith("0 summaries")
