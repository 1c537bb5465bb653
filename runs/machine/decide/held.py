"""An operation that another run holds: answered from its receipt, waited for, or a conflict that a person settles."""

from __future__ import annotations

from datetime import datetime

import msgspec

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.back_off import back_off
from runs.machine.decide.common import Events, human
from runs.machine.late import Bindings
from runs.machine.transitions import allows


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Another run's effect under the operation id, as a send's transaction found it. Erased texts are empty."""

    run: str
    effect: int
    status: s.EffectStatus
    in_lineage: bool
    operation_id: str
    arguments: str = ""
    arguments_digest: str = ""
    reference: str = ""
    account: str = ""

    @property
    def name(self) -> str:
        """As people and logs name it."""
        return f"{self.run} E-{self.effect}"


def occupied(
    state: s.RunState,
    holder: Holder,
    *,
    terms: e.Terms,
    account: str,
    now: datetime,
    bindings: Bindings | None = None,
) -> Events:
    """What follows where another run holds the operation of the next step. Nothing was sent, and nothing is here."""
    step = bindings.step if bindings else state.remaining[0]
    if holder.in_lineage and holder.status in s.OPEN_EFFECT and allows(state.state, e.AttemptFailed):
        return _settle_that_first(state, step, holder, terms, now)
    if not holder.in_lineage or state.state is not s.State.EXECUTING or state.plan is None:
        why = f"{holder.operation_id} is {holder.status} in {holder.name}"
        return human("effect_conflict", subject=step.name, evidence=why)
    if holder.arguments_digest != step.arguments_digest:
        both = f"{holder.arguments or holder.arguments_digest} in {holder.name} -> {step.arguments}"
        return human("effect_conflict", subject=step.name, evidence=both)
    if holder.account and holder.account != account:
        both = f"account {holder.account} in {holder.name} -> account {account}"
        return human("effect_conflict", subject=step.name, evidence=both)
    return (
        e.StepAnswered(
            step=step.name, run=holder.run, effect=holder.effect, reference=holder.reference,
            plan_version=state.plan.version,
        ),
    )  # fmt: skip


def _settle_that_first(
    state: s.RunState, step: s.PlanStep, holder: Holder, terms: e.Terms, now: datetime
) -> Events:
    """Its own run settles it. This one looks again with back-off, for as long as the tool's patience lasts."""
    why = f"{holder.operation_id} is {holder.status} in {holder.name}"
    blocked = state.blocked
    if blocked and now >= blocked.since + terms.patience:
        return human("effect_conflict", subject=step.name, evidence=why)
    retry_at = now + back_off(blocked.times if blocked else 0)
    return (e.AttemptFailed(what=step.name, detail=why, retry_at=retry_at, held_by=holder.name),)
