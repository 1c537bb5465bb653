"""A plan's steps as expressions see them: those of a policy, and the predicates of constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal

import cel
from django.utils.translation import gettext as _

from approvals.expressions import Expression, ExpressionFailed, context_of, rounded_up
from approvals.policy import Step


class Seen:
    """The steps, each made once for all expressions, of what these look at (`names`) alone."""

    def __init__(self, steps: Sequence[Step], names: frozenset[str]) -> None:
        self._steps, self._names = steps, names
        self._contexts: list[cel.Context | None] = [None] * len(steps)
        self._total: timedelta | None = None
        self._summed = False

    def each(self, expression: Expression) -> Iterator[bool | ExpressionFailed]:
        """What the expression says of each step in turn; why, where it has no value for it."""
        for number, step in enumerate(self._steps):
            try:
                yield expression.holds(self._context(number, step))
            except ExpressionFailed as error:
                yield error

    def where(self, expression: Expression, value: bool) -> tuple[tuple[int, ...], str]:
        """The steps for which the expression has the value; and the first failure, with its step, empty if none."""
        found, failure = list[int](), ""
        for number, said in enumerate(self.each(expression)):
            if isinstance(said, ExpressionFailed):
                facts = {"number": number + 1, "tool": self._steps[number].tool, "why": str(said)}
                failure = failure or _("step %(number)d (%(tool)s): %(why)s") % facts
            elif said is value:
                found.append(number)
        return tuple(found), failure

    def _context(self, number: int, step: Step) -> cel.Context:
        if (made := self._contexts[number]) is None:
            made = self._contexts[number] = context_of(self._values(step))
        return made

    def _values(self, step: Step) -> dict[str, object]:
        known: dict[str, object] = {
            "tool": step.tool, "arguments": dict(step.arguments), "reversible": step.reversible, "tenant": step.tenant,
            "agent": step.agent, "principal": step.principal, "steps": len(self._steps), "step": step.name,
            "system": step.system,
        }  # fmt: skip
        seen = {name: value for name, value in known.items() if name in self._names}
        try:
            if "cost" in self._names:
                seen["cost"] = _amount(step.cost)
            if "total_cost" in self._names:
                seen["total_cost"] = self._sum()
        except (ValueError, ArithmeticError) as error:
            raise ExpressionFailed(
                _("A cost in this plan is no amount that can be compared exactly.")
            ) from error
        return seen

    def _sum(self) -> timedelta | None:
        if not self._summed:
            costs = [step.cost for step in self._steps if step.cost is not None]
            self._total = _amount(sum(costs, Decimal()) if costs else None)
            self._summed = True
        return self._total


def _amount(cost: Decimal | None) -> timedelta | None:
    return None if cost is None else rounded_up(cost)
