"""What a plan takes for true: whether its basis, observations and constraints, still holds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.waits import Part

if TYPE_CHECKING:
    from runs.machine.draft import Draft

#: The name of the check, and of the cause that ends a plan whose assumption is broken.
CHECK: Final = "assumptions"


class Standing(StrEnum):
    """Whether an assumption may be relied on."""

    HOLDS = "holds"
    OUT_OF_DATE = "out_of_date"  #: a part of its basis has to be read again first
    BROKEN = "broken"


class Basis(Part, frozen=True, kw_only=True):
    """One thing that an assumption rests on: an observation or a constraint; whether it is as it was taken to be."""

    id: str
    name: str  #: the resource, or the constraint's text
    version: str
    fresh: bool
    seen: s.Observation | None = None


class Assumed(Part, frozen=True, kw_only=True):
    """An assumption of a plan with its basis; where it is broken, by what and since which event."""

    number: int
    text: str
    basis: tuple[Basis, ...]
    standing: Standing
    by: str = ""
    seq: int | None = None


def assumed(state: s.RunState, plan: s.PlanVersion, now: datetime) -> tuple[Assumed, ...]:
    """The plan's assumptions in its order."""
    broken = {x.text: x for x in plan.broken}
    return tuple(
        _assumed(state, number, x, broken.get(x.text), now)
        for number, x in enumerate(plan.plan.assumptions, 1)
    )


def _assumed(
    state: s.RunState, number: int, found: s.PlanAssumption, broken: s.BrokenAssumption | None, now: datetime
) -> Assumed:
    basis = (
        *(_observed(state, rest, now) for rest in found.rests_on),
        *(_limit(x) for x in state.constraints if x.number in found.constraints),
    )
    fresh = Standing.HOLDS if all(x.fresh for x in basis) else Standing.OUT_OF_DATE
    return Assumed(
        number=number, text=found.text, basis=basis, standing=Standing.BROKEN if broken else fresh,
        by=broken.by if broken else "", seq=broken.seq if broken else None,
    )  # fmt: skip


def _observed(state: s.RunState, rest: s.PlanRest, now: datetime) -> Basis:
    seen = state.observations.get((rest.tool, rest.arguments))
    bound = state.produced.get(rest.resource, rest.version)
    return Basis(
        id=f"O-{seen.number}" if seen else "", name=rest.resource, version=bound, seen=seen,
        fresh=seen is not None and seen.current(now) and seen.version == bound,
    )  # fmt: skip


def _limit(found: s.Constraint) -> Basis:
    return Basis(id=f"C-{found.number}", name=found.term.text, version=found.term.source_version, fresh=True)


def found_broken(draft: Draft, checks: Iterable[e.Check], recorded: e.Recorded) -> None:
    """Checks failed: what the latest plan takes for true and does not hold any more is marked with what broke it."""
    lost = {x.subject: x.now for x in checks if x.name == CHECK and not x.passed}
    if lost and draft.plans:
        mark(draft, lost, recorded)


def mark(draft: Draft, lost: dict[str, str], recorded: e.Recorded) -> None:
    """Mark these assumptions of the latest plan as broken, by what each text names."""
    plan = draft.plans[-1]
    known = {x.text for x in plan.broken}
    new = tuple(
        s.BrokenAssumption(text=text, by=by, seq=recorded.seq)
        for text, by in lost.items()
        if text not in known
    )
    draft.plans = (*draft.plans[:-1], replace(plan, broken=(*plan.broken, *new)))


def constraint_gone(draft: Draft, number: int, recorded: e.Recorded) -> None:
    """A constraint was withdrawn or amended: what the latest plan takes for true because of it does not hold."""
    rests = (x for x in draft.plans[-1].plan.assumptions if number in x.constraints) if draft.plans else ()
    if lost := {x.text: f"C-{number}" for x in rests}:
        mark(draft, lost, recorded)
