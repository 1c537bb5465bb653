"""How long a policy takes to judge one step of a plan, as it does before each proposal, decision and send."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from statistics import median
from time import process_time

from approvals.documents import policy_of
from approvals.policy import Requirement, Step, requirement
from evals.figures import Figure

STEPS = 20
#: Three rules and a check, as an organisation would write them.
TEXT = """{
  "rules": [
    {"name": "from 100 EUR up", "not_by": ["principal", "creator"],
     "when": "tool == 'pay' && (cost == null || cost >= money('100.00') || arguments.currency != 'EUR')"},
    {"name": "from 1,000 EUR up", "needed": 2, "when": "cost != null && cost >= money('1000.00')"},
    {"name": "Finance", "groups": ["Finance"], "when": "!reversible && money(arguments.amount) > money('500.00')"}
  ],
  "checks": [
    {"name": "limit", "kind": "hard", "must": "cost == null || cost <= money('5000.00')", "sentence": "At most 5,000."}
  ]
}"""


def measure(*, times: int = 200) -> Iterator[Figure]:
    """Microseconds of one core for each step of a plan of 20, all rules and checks together."""
    policy, steps = policy_of(TEXT, version="bench/1"), plan()
    asked = requirement(policy=policy, steps=steps)
    assert judged(asked), "it measures a policy that does not say what it should"
    found = []
    for _ in range(times):
        began = process_time()
        requirement(policy=policy, steps=steps)
        found.append(process_time() - began)
    value = 1_000_000 * median(found) / len(steps)
    yield Figure(name="policy_step_us", value=value, unit="us", target=50)


def plan() -> list[Step]:
    """Payments of 60 to 1,200 EUR."""
    return [
        Step(
            tool="pay", arguments={"order": str(1000 + n), "amount": f"{60 * n}.00", "currency": "EUR"},
            cost=Decimal(60 * n), reversible=n % 2 == 0, tenant="bench", agent="payer", principal="ana",
        )
        for n in range(1, STEPS + 1)
    ]  # fmt: skip


def judged(asked: Requirement) -> bool:
    """Whether every rule applied to a step, none failed, and the check held."""
    return len(asked.because) == 3 and asked.needed == 2 and not asked.failure and not asked.failed
