"""Over-long values: by their ends on the review page, whole on a page of their own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.urls import reverse

from runs.machine import state as s
from runs.machine.leaves import Value, values_of
from runs.models import Run
from runs.pages.run_page import heading

Context = dict[str, Any]


def context(
    run_id: str, plan: s.PlanVersion, long: Sequence[Value], read: Collection[int], changes: Sequence[Context]
) -> Context:
    """`changes` with the over-long values by their ends, and `unopened`: what this person opens before approving."""
    shown = {(x.step, x.path): _ends(run_id, plan, x, read) for x in long}
    cut = [_cut(change, shown) for change in changes]
    return {"changes": cut, "unopened": [x for x in shown.values() if not x["opened"]]}


def _ends(run_id: str, plan: s.PlanVersion, value: Value, read: Collection[int]) -> Context:
    return {
        "name": f"{value.step} {value.path}",
        "first": value.first,
        "last": value.last,
        "size": value.size,
        "hash": value.hash,
        "url": reverse("plan-value", args=[run_id, plan.version, value.number]),
        "opened": value.number in read,
    }


def _cut(change: Context, shown: dict[tuple[str, str], Context]) -> Context:
    if "arguments" not in change:
        return change
    rows = [
        row | {"ends": ends} if (ends := shown.get((change["step"], row["path"]))) else row
        for row in change["arguments"]
    ]
    return change | {"arguments": rows}


def found(plan: s.PlanVersion, number: int) -> Value | None:
    """The plan's value of this number."""
    return next((value for value in values_of(plan.plan) if value.number == number), None)


def page(run: Run, state: s.RunState, plan: s.PlanVersion, value: Value) -> Context:
    """All of runs/value.html."""
    return {
        "run": heading(run, state),
        "plan": {"version": plan.version, "digest": plan.digest},
        "value": value,
        "review_url": reverse("plan-review", args=[run.pk, plan.version]),
    }
