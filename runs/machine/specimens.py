"""The smallest run in each state: what the launch gates ask every question of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.evolve import evolve

MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SYSTEM: Final = e.Actor(e.ActorKind.SYSTEM, "gates", "gates")
_SENDER: Final = e.Sender(host="h", boot="b", pid=1, started="1", uptime=timedelta(hours=1))
_TERMS: Final = e.Terms(
    reversible=False, queryable=True, retention=None, dispatch_window=timedelta(seconds=1),
    timeout=timedelta(seconds=1), settle=timedelta(seconds=1), patience=timedelta(minutes=1),
)  # fmt: skip
_STARTED: Final = e.RunStarted(
    run="run_0", tenant="t", agent="a", agent_version="1", goal="g", input=e.raw("{}"), creator="p", principal="p",
    lineage="run_0", start_key="k",
    constraints=(e.Term(text="c", source_kind="policy", source_ref="r", source_version="1"),),
)  # fmt: skip


def specimen(state: s.State, *reasons: str) -> s.RunState:
    """A run in that state, with the reasons where it needs a person, and an effect in doubt where one must be."""
    begun = evolve(None, e.Recorded(1, MOMENT, _SYSTEM, _STARTED))
    doubt = state is s.State.UNKNOWN or bool({"effect_unknown", "effect_conflict"} & set(reasons))
    stopped = state in (s.State.UNKNOWN, s.State.NEEDS_HUMAN)
    return replace(
        begun,
        state=state,
        before=s.State.EXECUTING if stopped else None,
        reasons=tuple(e.Reason(code=code, subject="E-1", evidence="seen") for code in reasons),
        effects={1: effect()} if doubt else {},
    )


def waiting() -> s.RunState:
    """A run that waits for a timer."""
    began = e.WaitBegan(step="x", kind="timer", digest="d", until=MOMENT)
    return evolve(specimen(s.State.EXECUTING), e.Recorded(2, MOMENT, _SYSTEM, began))


def effect(status: s.EffectStatus = s.EffectStatus.UNKNOWN) -> s.Effect:
    """One use of a tool, sent once."""
    return s.Effect(
        number=1, step="x", tool="x", system="y", account="a", operation_id="x:1", key="0" * 64, round=0,
        arguments="{}", arguments_digest="d", plan_version=1, title="x", cost=None, terms=_TERMS, status=status,
        intent_seq=1, intent_at=MOMENT, sends=(s.Send(seq=1, at=MOMENT, sender=_SENDER),),
    )  # fmt: skip


def confirmed() -> s.Effect:
    """The same, with its receipt."""
    receipt = s.Receipt(
        seq=2, at=MOMENT, executed=True, reference="ref", source="call", detail="", failed=None
    )
    return replace(effect(s.EffectStatus.CONFIRMED), receipt=receipt)


def undoing() -> s.RunState:
    """A run that undoes its effect 1 by its effect 2, which is in flight."""
    by = replace(
        effect(s.EffectStatus.IN_FLIGHT), number=2, step="undo:x", operation_id="undo:x:1", key="1" * 64,
        undoes=s.Undoes(run="run_0", effect=1),
    )  # fmt: skip
    return replace(
        specimen(s.State.COMPENSATING), direction=s.Direction.UNDO, cancel_requested=True, undo_requested=True,
        effects={1: confirmed(), 2: by}, plans=(_stored(plan()),),
    )  # fmt: skip


def _stored(document: s.PlanDocument) -> s.PlanVersion:
    return s.PlanVersion(
        version=document.version, document="{}", plan=document, digest="d", claim="", seq=1, at=MOMENT
    )


def plan(*, resource: str = "r:1") -> s.PlanDocument:
    """A plan of one step that rests on one observation."""
    rest = s.PlanRest(tool="read", arguments="{}", resource=resource, version="v1")
    step = s.PlanStep(
        name="x", tool="x", system="y", operation_id="x:1", arguments="{}", arguments_digest="d", title="x",
        reversible=False, phrase="x", volatile=(), cost=None, rests_on=(rest,),
    )  # fmt: skip
    return s.PlanDocument(
        run="run_0", version=1, goal_version=1, constraints_digest="c", policy_version="1", steps=(step,),
        promises=(), assumptions=(),
    )  # fmt: skip
