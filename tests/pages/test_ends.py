"""What the pages say of a run that is over: nothing counts down any more, and causes name persons only."""

from __future__ import annotations

from datetime import timedelta

from runs.machine.events import Cause
from runs.machine.state import State
from runs.pages import words
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import House, advance


def test_a_run_that_is_over_counts_nothing_down(
    house: House, world: World, sign_in: SignIn, clock: Clock
) -> None:
    run = house.start()
    assert advance(run).state is State.SUCCEEDED
    clock.move(timedelta(days=2))

    page = read(sign_in(house.viewer).get(f"/runs/{run.pk}/"))

    promised = page.one("li", id="obligation-B-1").text
    assert "discharged 20" in promised and " due " not in promised
    (line,) = [x for x in page.part("handoff").all("li") if x.attrs["data-key"] == "observations"]
    assert "The run is over, so nothing rests on them any more." in line.text
    assert "old when the run ended" in page.text and "too old:" not in page.text
    assert "Sent not recorded, but answered" in page.one(data_testid="effect", data_effect="E-1").text


def test_a_quorum_that_is_gone_is_not_worded_as_a_person() -> None:
    said = words.cause(Cause(what="approvers", subject="quorum", was="2", now=""))

    assert said == "2 approvals that stand are needed, and there are fewer."
