"""`manage.py rereduce`: it names what differs, and makes it as the log says."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from runs.models import Effect, PlanVersion, Run
from tests.people import advance, assert_replays
from tests.story.world import Story


def _rereduce(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("rereduce", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_rows_that_somebody_changed_are_named_and_made_anew(story: Story) -> None:
    run, other = story.start("2051"), story.waiting("2052")
    advance(run)
    assert "2 runs: the rows are what the logs say" in _rereduce("--check")[0]

    Effect.objects.filter(run=run, number=1).update(status="not_executed", reference="")
    PlanVersion.objects.filter(run=other).delete()
    Run.objects.filter(pk=run.pk).update(goal="Something else", plan_version=9)
    err = StringIO()
    with pytest.raises(CommandError, match="2 of 2 runs differ"):
        call_command("rereduce", "--check", stdout=StringIO(), stderr=err)
    assert f"{run.pk}: run: plan_version is 9, the log says 1" in err.getvalue()
    assert f"{run.pk}: effects 1: status is 'not_executed', the log says 'confirmed'" in err.getvalue()
    assert f"{other.pk}: plans 1" in err.getvalue()

    _rereduce(run.pk, other.pk)
    for each in (run, other):
        assert_replays(each)


def test_a_run_that_is_not_there_is_named(story: Story) -> None:
    err = StringIO()
    with pytest.raises(CommandError, match="1 of 1 runs could not be made anew"):
        call_command("rereduce", "run_NOSUCHRUN000", stdout=StringIO(), stderr=err)
    assert "run_NOSUCHRUN000: there is no such run" in err.getvalue()
