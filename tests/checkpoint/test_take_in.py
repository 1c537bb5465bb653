"""A run goes on from its checkpoint alone, on an empty database, and nothing happens outside twice."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from runs import actions, checkpoints
from runs.machine import state as s
from runs.models import Run
from tests.checkpoint.conftest import Pass
from tests.checkpoint.lives import Living, Whole, came_to, empty, whole
from tests.outside import World
from tests.people import House

GIVE, TELL = {"tool": "give_dear", "order": "7", "amount": "120.00"}, {"tool": "tell", "order": "7"}
PART = {"part": {"plans": [[{"signal": "go"}, {"tool": "pay", "order": "8"}]]}}


def _approved(house: House, world: World) -> Run:
    """Approved by a person, an answer lost, a promise kept."""
    world.answers = ["lost"]
    return house.start("2000", "250.00")


def _waits(house: House, world: World) -> Run:
    """A timer, an answer, a run that it starts, and effects between them."""
    steps = ({"tool": "pay", "order": "6"}, {"timer": 1}, {"signal": "yes"}, {"children": PART}, TELL)
    return house.scripted(steps)


def _undone(house: House, world: World) -> Run:
    """Ended by a person and undone, with an approval for that too."""
    return house.scripted((TELL, GIVE, {"signal": "never"}))


LIVES: dict[str, tuple[Callable[[House, World], Run], int]] = {
    "approved": (_approved, 0), "waits": (_waits, 0), "undone": (_undone, 2),
}  # fmt: skip
#: At each event one of three: the run had died there, with or without what was in flight; or it had gone on to its end.
OUTSIDE = ("without", "with", "all")


@pytest.fixture(params=LIVES)
def life(request: pytest.FixtureRequest, house: House, world: World, passing: Pass) -> tuple[Whole, Living]:
    """A life that nothing disturbed."""
    begin, undo = LIVES[request.param]
    living = Living(house, world, passing, undo_after=undo)
    return whole(begin(house, world), living), living


def test_from_every_event_each_effect_happens_once_and_the_end_is_the_same(
    life: tuple[Whole, Living],
) -> None:
    undisturbed, living = life
    wanted = came_to(undisturbed.state, living.world)
    assert set(wanted["outside"].values()) == {1}

    for seq, file in _cuts(undisturbed):
        for how in OUTSIDE if os.environ.get("MATRIX") == "all" else (OUTSIDE[seq % 3],):
            empty()
            living.world.reset()
            living.world.executed = (
                list(undisturbed.executed) if how == "all"
                else undisturbed.outside_at(seq, in_flight=how == "with")
            )  # fmt: skip
            taken = checkpoints.read(file)
            run = actions.take_in(person=living.house.operator, taken=taken)
            end = living.on(run.pk)
            assert came_to(end, living.world) == wanted, (seq, how)
            assert _plan_kept(taken.runs[0].state, undisturbed.state, end), (seq, how)


def _cuts(undisturbed: Whole) -> list[tuple[int, bytes]]:
    """Every point at which a process can die; of a long life every second, but in make matrix."""
    every = list(undisturbed.files.items())
    return every if os.environ.get("MATRIX") == "all" or len(every) < 14 else every[::2]


_PLANS = (s.State.PLANNING, s.State.CANCELLING)


def _plan_kept(cut: s.RunState, undisturbed: s.RunState, end: s.RunState) -> bool:
    """The plan that was accepted before the cut is carried out, byte for byte, where it was the last one."""
    last = undisturbed.plans[-1] if undisturbed.plans else None
    if cut.plan is None or last is None or cut.state in _PLANS or len(cut.plans) < last.version:
        return True
    return end.plan is not None and end.plan.document == last.document
