"""A run with a log of any length: it plans, does its steps, loses its plan, and plans again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import batched, chain, count, islice

import msgspec
from msgspec.structs import replace

from evals.people import House
from runs import engine
from runs.clock import database_now
from runs.ledger import append, load, log
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import digest, idempotency_key

STEPS = 25
_AT_ONCE = 500
_BENCH = e.Actor(e.ActorKind.SYSTEM, "bench", "bench")


def long_run(house: House, *, length: int) -> str:
    """Store a run of `length` events, 25 effects to a plan, each like one that a real run left behind; its id."""
    sample = house.approved(steps=STEPS)
    engine.advance(sample.pk)
    events = [recorded.event for recorded in log(sample.pk)]
    run = house.started(steps=STEPS).pk
    state = load(run)
    lives = chain.from_iterable(_life(run, number, events) for number in count(1))
    for some in batched(islice(lives, length - state.seq), _AT_ONCE):
        state = append(state, some, actor=_BENCH, now=database_now())
    return run


def _life(run: str, life: int, sample: list[e.Event]) -> Iterator[e.Event]:
    """One plan from its proposal until it is voided."""
    plan = _plan(run, life, sample)
    text = decide.plan_document(plan)
    made = digest("plan", text)
    yield e.PlanProposed(version=life, document=e.raw(text), digest=made, claim="")
    yield e.PlanApprovedByPolicy(version=life, digest=made, policy_version=plan.policy_version)
    yield _first(sample, e.RevalidationPassed)
    for number, step in enumerate(plan.steps, (life - 1) * len(plan.steps) + 1):
        yield from _effect(run, number, step, life, sample)
    yield e.PlanVoided(version=life, causes=(e.Cause(what="resources", subject="bench", was="1", now="2"),))


def _plan(run: str, life: int, sample: list[e.Event]) -> s.PlanDocument:
    document = e.text_of(_first(sample, e.PlanProposed).document)
    plan = msgspec.json.decode(document, type=s.PlanDocument)
    named = (f"{run}-{life}-{number}" for number in count())
    steps = tuple(
        replace(step, name=name, operation_id=f"nothing:{name}")
        for step, name in zip(plan.steps, named, strict=False)
    )
    return replace(plan, run=run, version=life, steps=steps)


def _effect(run: str, number: int, step: s.PlanStep, life: int, sample: list[e.Event]) -> Iterator[e.Event]:
    """The intent of a step and its receipt."""
    key = idempotency_key(run_id=run, step=step.name, arguments=step.arguments, round_=0)
    yield replace(
        _first(sample, e.EffectIntended), effect=number, step=step.name, operation_id=step.operation_id, key=key,
        plan_version=life,
    )  # fmt: skip
    yield replace(_first(sample, e.ReceiptStored), effect=number, reference=step.operation_id)


def _first[E: e.Event](sample: list[e.Event], kind: type[E]) -> E:
    return next(event for event in sample if isinstance(event, kind))
