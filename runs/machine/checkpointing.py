"""state -> the document of its checkpoint. Pure: results come from the log, as the caller read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Raw

from runs.machine import checkpoint as c
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import idempotency_key, round_suffix
from runs.machine.decide.sends import key_of
from runs.machine.evolve import REDUCER_VERSION
from runs.machine.waits import child_id


def document(
    state: s.RunState, *, head: str, schema: int, evidence: Mapping[int, Raw], started: Mapping[str, str]
) -> Any:
    """The checkpoint of a run as of its state's event, whose hash is `head`. `evidence` is what came with receipts, by
    the seq of their event; `started` the digests of the checkpoints of the runs that it started; `schema` the version
    of the stored state.
    """
    return c.made(
        state, seq=state.seq, head=head, at=state.at,
        position={"now": _position(state)},
        actions={
            "results": dict(_results(state, evidence)), "may_send": tuple(_may_send(state)),
            "may_start": tuple(_may_start(state)), "open": tuple(map(_open, state.open_effects)),
            "started": dict(started),
        },
        governance={"authority": _authority(state)},
        versions=_versions(state.identity, schema),
    )  # fmt: skip


def _position(state: s.RunState) -> c.Position:
    step = state.remaining[0] if state.remaining else None
    open_ = state.open_effects[0] if state.open_effects else None
    return c.Position(
        plan_version=state.plan.version if state.plan else 0,
        plan_digest=state.plan.digest if state.plan else "",
        step=open_.step if open_ else step.name if step else "",
        attempt=len(open_.sends) if open_ else 0,
    )


def _authority(state: s.RunState) -> c.Authority:
    identity, request = state.identity, state.request
    return c.Authority(
        principal=state.principal, grant=state.grant, approval=request.id if request else "",
        approval_status=request.status.value if request else "", deadline=identity.deadline,
        budget=identity.budget, spent=str(state.spent),
    )  # fmt: skip


def _versions(identity: s.Identity, schema: int) -> c.Versions:
    return c.Versions(
        checkpoint=c.VERSION, schema=schema, reducer=REDUCER_VERSION, agent=identity.agent,
        agent_version=identity.agent_version, code=dict(identity.code),
    )  # fmt: skip


def reading_key(run: str, tool: str, arguments: str) -> str:
    """The key of what a reading tool read: made as that of an effect, from run, tool and arguments."""
    return idempotency_key(run_id=run, step=f"read {tool}", arguments=arguments, round_=0)


def _results(state: s.RunState, evidence: Mapping[int, Raw]) -> Iterator[tuple[str, c.Result]]:
    for effect in state.effects.values():
        if receipt := effect.receipt:
            yield effect.key, c.Result(
                tool=effect.tool, arguments=effect.arguments, at=receipt.at, seq=receipt.seq, effect=effect.number,
                outcome="done" if receipt.executed else "not_done", reference=receipt.reference,
                value=evidence.get(receipt.seq, Raw(b"null")),
            )  # fmt: skip
    for seen in state.observations.values():
        yield reading_key(state.identity.run, seen.tool, seen.arguments), c.Result(
            tool=seen.tool, arguments=seen.arguments, at=seen.observed_at, seq=seen.seq, outcome="read",
            value=e.raw(seen.value), version=seen.version,
        )  # fmt: skip


def _may_send(state: s.RunState) -> Iterator[c.MaySend]:
    for step in () if state.state in s.TERMINAL else state.remaining:
        if step.wait is None and not state.stands(step):
            round_ = state.round_of(step)
            yield c.MaySend(
                step=step.name, tool=step.tool, system=step.system, key=key_of(state, step), round=round_,
                operation_id=round_suffix(step.operation_id, round_), arguments_digest=step.arguments_digest,
                reversible=step.reversible,
            )  # fmt: skip


def _may_start(state: s.RunState) -> Iterator[c.MayStart]:
    for step in () if state.state in s.TERMINAL else state.remaining:
        for child in step.wait.children if step.wait else ():
            run = child_id(state.identity.run, step.name, child.name, state.round_of(step))
            if run not in state.children:
                yield c.MayStart(step=step.name, name=child.name, agent=child.agent, run=run)


def _open(effect: s.Effect) -> c.Open:
    terms = effect.terms
    may = "ask" if terms.queryable else "person" if terms.blind else "resend"
    return c.Open(
        effect=effect.number, key=effect.key, operation_id=effect.operation_id, status=effect.status, may=may,
        settled_at=effect.settled_at, asked=len(effect.asks),
    )  # fmt: skip
