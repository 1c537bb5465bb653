"""Where single keys lead from a run, on its page and in a list."""

from __future__ import annotations

from collections.abc import Iterable

from django.urls import reverse

from runs.machine import state as s


def addresses(run: str, *, plan: int | None, unknown: Iterable[tuple[int, bool]]) -> dict[str, str]:
    """`review` of the plan version that waits for approval, `reconcile` of the unknown effect that weighs most.

    `unknown` has the number of each unknown effect and whether it can be undone. What is not there is missing.
    """
    found = {}
    if plan is not None:
        found["review"] = reverse("plan-review", args=[run, plan])
    if worst := min(unknown, key=lambda effect: (effect[1], effect[0]), default=None):
        found["reconcile"] = reverse("effect-reconcile", args=[run, worst[0]])
    return found


def of_state(state: s.RunState) -> dict[str, str]:
    """Those of a run that was loaded."""
    waits = state.plan is not None and state.state is s.State.WAITING_APPROVAL
    doubtful = [e for e in state.open_effects if e.status is s.EffectStatus.UNKNOWN]
    return addresses(
        state.identity.run,
        plan=state.plan.version if state.plan and waits else None,
        unknown=[(effect.number, effect.terms.reversible) for effect in doubtful],
    )
