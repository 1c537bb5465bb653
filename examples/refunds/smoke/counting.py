"""What came of it all: runs against what the service really executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from examples.refunds.smoke.stage import Shown

REFUND = "refund:order-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Orders by what became of them."""

    runs: int
    approved: frozenset[str]
    executed: frozenset[str]
    duplicated: frozenset[str]
    unfinished: tuple[str, ...]

    @property
    def lost(self) -> frozenset[str]:
        """Approved and never refunded."""
        return self.approved - self.executed

    def problems(self) -> list[str]:
        """What must not be, in words."""
        found = {
            "refunded twice": self.duplicated,
            "approved and not refunded": self.lost,
            "refunded and not approved": self.executed - self.approved,
            "not finished": self.unfinished,
        }
        return [f"{what}: {', '.join(sorted(orders))}" for what, orders in found.items() if orders]

    def __str__(self) -> str:
        """The last line of the story."""
        return (
            f"{self.runs} runs, {len(self.approved)} refunds approved, {len(self.executed)} executed, "
            f"{len(self.duplicated)} duplicated, {len(self.lost)} lost"
        )


def count(*, runs: Mapping[str, Shown], executed: Mapping[str, int]) -> Counted:
    """Compare. A run that succeeded was approved, by people or by the policy; one that was cancelled was not."""
    times = {name.removeprefix(REFUND): n for name, n in executed.items() if name.startswith(REFUND)}
    return Counted(
        runs=len(runs),
        approved=frozenset(order for order, run in runs.items() if run.state == "succeeded"),
        executed=frozenset(order for order, n in times.items() if n),
        duplicated=frozenset(order for order, n in times.items() if n > 1),
        unfinished=tuple(o for o, run in runs.items() if run.state not in ("succeeded", "cancelled")),
    )
