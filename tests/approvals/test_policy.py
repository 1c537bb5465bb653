"""Who must approve, as code says; and what happens where that code fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from accounts.rights import Right
from approvals.policy import ApprovalRule, Party, Requirement, RulePolicy, Step, requirement

DEAR = ApprovalRule(
    name="from 100 EUR",
    applies=lambda step: step.cost is not None and step.cost >= 100,
    stands_for=timedelta(hours=2),
)
FINAL = ApprovalRule(
    name="cannot be undone, from 1000 EUR",
    applies=lambda step: not step.reversible and (step.cost or 0) >= 1000,
    needed=2,
    stands_for=timedelta(hours=1),
    not_by=frozenset({Party.PRINCIPAL}),
)
POLICY = RulePolicy(version="v1", rules=(DEAR, FINAL))


def step(cost: str | None = None, **other: Any) -> Step:
    return Step(
        **{"tool": "refund", "arguments": {}, "reversible": False, "cost": cost and Decimal(cost), **other}
    )


@pytest.mark.parametrize(
    ("costs", "needed", "because"),
    [
        ([], 0, ()),
        ([None, "99.99"], 0, ()),
        (["1", "100.00"], 1, ("from 100 EUR",)),
        (["100", "1000"], 2, ("from 100 EUR", "cannot be undone, from 1000 EUR")),
    ],
)
def test_the_strictest_rule_that_applies_counts(
    costs: list[str | None], needed: int, because: tuple[str, ...]
) -> None:
    asked = requirement(policy=POLICY, steps=[step(cost) for cost in costs])
    assert (asked.needed, asked.because, asked.failure) == (needed, because, "")


def test_the_shortest_time_and_every_exclusion_count() -> None:
    asked = requirement(policy=POLICY, steps=[step("1000")])
    assert asked.stands_for == timedelta(hours=1)
    assert asked.not_by == frozenset({Party.PRINCIPAL})
    assert requirement(policy=POLICY, steps=[step("1000", reversible=True)]).not_by == frozenset()


@dataclass(frozen=True)
class Broken:
    version: str = "v1"

    def evaluate(self, steps: Sequence[Step]) -> Requirement:
        raise KeyError("amount")


@dataclass(frozen=True)
class Negative:
    version: str = "v1"

    def evaluate(self, steps: Sequence[Step]) -> Requirement:
        return Requirement(needed=-1)


FAULTY_RULE = RulePolicy(
    version="v1", rules=(ApprovalRule(name="faulty", applies=lambda step: bool(step.arguments["amount"])),)
)


@pytest.mark.parametrize("policy", [Broken(), Negative(), FAULTY_RULE])
def test_a_policy_that_fails_asks_a_person(policy: Any) -> None:
    asked = requirement(policy=policy, steps=[step("1")])
    assert asked.needed == 1 and asked.failure and Party.PRINCIPAL in asked.not_by


@pytest.mark.parametrize(
    ("version", "rules", "names"),
    [
        (" ", (), "version"),
        ("v1", (ApprovalRule(name="none", applies=lambda step: True, needed=0),), "rules"),
        ("v1", (DEAR, ApprovalRule(name="x", applies=lambda step: True, right=Right.START_RUNS)), "rules"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused_where_it_is_written(
    version: str, rules: tuple[ApprovalRule, ...], names: str
) -> None:
    with pytest.raises(ValueError, match=names):
        RulePolicy(version=version, rules=rules)
