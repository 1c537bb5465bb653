"""A person's statement about an unknown effect: never a receipt, and not alone where it cannot be undone."""

from __future__ import annotations

from uuid import uuid4

import pytest

from accounts.models import User
from accounts.rights import Right, grant_right
from runs import access, actions
from runs.clock import database_now
from runs.machine.decide import ConclusionRefused
from runs.machine.state import EffectStatus, RunState, State
from runs.models import Run
from tests.outside import World
from tests.people import House, advance, assert_replays


@pytest.fixture
def unknown(house: House, world: World) -> Run:
    """A blind payment of which nobody can be asked, and two people who may attest."""
    world.answers = ["lost"]
    run = house.start(tool="pay_blind")
    assert advance(run).state is State.NEEDS_HUMAN
    for person in (house.operator, house.second):
        grant_right(to=person, right=Right.ATTEST_EFFECTS, obj=house.agent, actor=None, now=database_now())
    return run


def attest(
    run: Run, person: User, *, happened: bool = True, reference: str = "slip 7", how: str = "I called"
) -> RunState:
    actions.attest_effect(
        person=person,
        run_id=run.pk,
        effect=1,
        happened=happened,
        reference=reference,
        how=how,
        submission=uuid4(),
        signed_in_at=database_now(),
    )
    return assert_replays(run)


def test_one_statement_is_not_enough_where_it_cannot_be_undone(house: House, unknown: Run) -> None:
    state = attest(unknown, house.operator)

    assert state.state is State.NEEDS_HUMAN
    assert state.effects[1].status is EffectStatus.UNKNOWN
    assert [a.name for a in state.effects[1].attestations] == ["Operator"]


def test_two_who_state_the_same_settle_it(house: House, world: World, unknown: Run) -> None:
    attest(unknown, house.operator)
    state = attest(unknown, house.second)

    assert state.effects[1].status is EffectStatus.CONFIRMED
    assert state.effects[1].receipt is not None
    assert state.effects[1].receipt.source == "attestation"
    assert advance(unknown).state is State.SUCCEEDED
    assert world.times("pay:1042") == 1


def test_one_person_cannot_be_both(house: House, unknown: Run) -> None:
    attest(unknown, house.operator)

    with pytest.raises(ConclusionRefused, match="second_person"):
        attest(unknown, house.operator)


def test_a_mistyped_reference_can_be_corrected(house: House, unknown: Run) -> None:
    attest(unknown, house.operator, reference="slip 77")
    assert attest(unknown, house.operator, reference="slip 7").effects[1].status is EffectStatus.UNKNOWN

    assert attest(unknown, house.second, reference="slip 7").effects[1].status is EffectStatus.CONFIRMED


def test_two_who_disagree_settle_nothing(house: House, unknown: Run) -> None:
    attest(unknown, house.operator, reference="slip 7")
    state = attest(unknown, house.second, reference="slip 8")

    assert state.effects[1].status is EffectStatus.UNKNOWN


@pytest.mark.parametrize(
    ("said", "condition"),
    [
        ({"how": " "}, "how_missing"),
        ({"reference": ""}, "reference_missing"),
        ({"happened": False, "reference": ""}, "too_early"),
    ],
)
def test_a_statement_without_its_ground_is_refused(
    house: House, unknown: Run, said: dict[str, object], condition: str
) -> None:
    with pytest.raises(ConclusionRefused, match=condition):
        attest(unknown, house.operator, **said)  # type: ignore[arg-type]
    assert_replays(unknown)


def test_it_takes_its_own_right(house: House, unknown: Run) -> None:
    with pytest.raises(access.NotPermitted):
        attest(unknown, house.approver)
    with pytest.raises(access.RunNotFound):
        attest(unknown, house.stranger)
