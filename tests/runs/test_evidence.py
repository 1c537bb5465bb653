"""Nothing that happened outside is dropped, whatever it looks like and whatever happens to the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connection

from runs import actions, engine, recovery
from runs.ledger import LeaseLost, load, log
from runs.machine import decide
from runs.machine import events as e
from runs.machine.canonical import ESCAPED
from runs.machine.state import EffectStatus, RunState, State
from runs.models import Run
from runs.tools import Ambiguous, Call, Executed, Found, Match, Refused
from tests.accounts.world import other_connection, wait_until
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance
from tests.runs.scripted import Script, executed, pay, plan


def kinds(run: Run) -> list[str]:
    return [type(x.event).__name__ for x in log(run.pk)]


def _deep() -> Any:
    value: Any = []
    for _ in range(5000):
        value = [value]
    return value


def _loop() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


EVIDENCE: dict[str, Callable[[], Any]] = {
    "NaN": lambda: {"amount": float("nan")},
    "half a surrogate pair": lambda: {"name": "x\ud800"},
    "NUL": lambda: {"name": "a\x00b", "\x00": 1},
    "a big integer": lambda: [2**80],
    "five megabytes": lambda: {"log": "z" * 5_000_000},
    "bytes and a set": lambda: [b"\xff", {1}],
    "keys that are no text": lambda: {1: 2, (1, 2): 3},
    "nested without end": _deep,
    "containing itself": _loop,
    "nothing": lambda: None,
}


def _another(script: Script, number: int) -> None:
    """The next run pays another order."""
    script.proposals = [plan(pay(order=str(number)))]


def test_whatever_came_back_the_receipt_is_kept_and_nothing_is_sent_twice(
    house: House, script: Script, world: World
) -> None:
    for number, (name, evidence) in enumerate(EVIDENCE.items()):
        _another(script, number)
        script.answer = executed(evidence())
        run = house.start()
        state = advance(run)
        assert (name, state.state) == (name, State.SUCCEEDED)
        assert (name, world.times(f"pay:{number}")) == (name, 1)
        assert kinds(run).count("ReceiptStored") == 1


def test_evidence_without_canonical_form_is_kept_as_text(house: House, script: Script, world: World) -> None:
    script.answer = executed({"amount": float("nan"), "name": "\ud800"})
    run = house.start()
    advance(run)

    (receipt,) = [x.event for x in log(run.pk) if isinstance(x.event, e.ReceiptStored)]

    assert e.value_of(receipt.evidence) == {ESCAPED: '{"amount": NaN, "name": "\\ud800"}'}


TEXTS = ["ref\x00-1", "ref\ud800", "r" * 100_000, "", "\n\t\u202e"]


def test_a_reference_may_be_any_text(house: House, script: Script, world: World) -> None:
    for number, text in enumerate(TEXTS):
        _another(script, number)
        script.answer = executed({}, reference=text)
        assert (text, advance(house.start()).state) == (text, State.SUCCEEDED)
        assert world.calls.count(f"pay:{number}") == 1


def test_a_refusal_may_be_any_text(house: House, script: Script, world: World) -> None:
    for number, text in enumerate(TEXTS):
        _another(script, number)
        script.answer = partial(_refuses, text)
        state = advance(house.start())
        assert (text, [r.code for r in state.reasons]) == (text, ["tool_failed"])
        assert world.calls.count(f"pay:{number}") == 1


def _refuses(text: str, call: Call) -> Refused:
    return Refused(detail=text, evidence={})


def test_a_record_may_have_any_text(house: House, script: Script, world: World) -> None:
    for number, text in enumerate(TEXTS):
        _another(script, number)
        script.answer = partial(_silent, text)
        script.found = partial(_shows, text)
        assert (text, advance(house.start()).state) == (text, State.SUCCEEDED)
        assert world.calls.count(f"pay:{number}") == 1


def _silent(text: str, call: Call) -> Ambiguous:
    return Ambiguous(detail=text)


def _shows(text: str, call: Call) -> Found:
    shown = Match(
        reference=text, operation_id=call.operation_id, key=call.key, account="acct", final=True,
        arguments=dict(call.arguments) | {"note": text},
    )  # fmt: skip
    return Found(matches=(shown,), account="acct", evidence=text)


def _raises(*_: Any) -> Any:
    raise KeyError("amount")


def test_a_postcondition_that_cannot_be_checked_does_not_hold_and_the_receipt_is_kept(
    house: House, script: Script, world: World
) -> None:
    script.postcondition = _raises

    state = advance(house.start())

    assert [r.code for r in state.reasons] == ["postcondition_failed"]
    assert state.effects[1].status is EffectStatus.CONFIRMED
    assert world.times("pay:7") == 1


def test_an_effect_in_another_account_needs_a_person(house: House, script: Script, world: World) -> None:
    script.answer = executed({}, account="another")

    state = advance(house.start())

    assert [r.code for r in state.reasons] == ["postcondition_failed"]
    assert "another" in state.reasons[0].evidence


@pytest.mark.parametrize("failing", ["call", "query"])
def test_a_fault_in_an_adapter_says_nothing_about_the_outside(
    house: House, script: Script, world: World, clock: Clock, failing: str
) -> None:
    script.answer = _raises
    script.found = _raises if failing == "query" else None
    run = house.start()
    state = advance(run)
    for _ in range(10):
        clock.move(timedelta(seconds=5))
        state = advance(run)

    expected = State.SUCCEEDED if failing == "call" else State.NEEDS_HUMAN
    assert state.state is expected
    assert world.calls == ["pay:7"]


def _end_my_connection() -> None:
    """What an administrator, a failover or a pooler does: the session ends under the worker."""
    raw: psycopg.Connection[Any] = connection.connection
    pid = raw.info.backend_pid
    with other_connection() as other:
        other.execute("select pg_terminate_backend(%s)", [pid])


def test_a_receipt_survives_the_end_of_the_connection(house: House, world: World) -> None:
    def hook(when: str) -> None:
        if when == "after":
            world.hook = None
            _end_my_connection()

    world.hook = hook
    run = house.start()

    state = advance(run)

    assert state.state is State.SUCCEEDED
    assert world.calls == ["pay:1042", "tell:1042"]
    assert state.effects[1].receipt is not None
    assert state.effects[1].receipt.source == "call"


def test_a_connection_that_ended_before_the_send_costs_nothing(house: House, world: World) -> None:
    run = house.approved()
    connection.ensure_connection()
    _end_my_connection()
    with pytest.raises(Exception, match="connection"):
        engine.advance(run.pk)
    connection.close()

    state = advance(run)

    assert state.state is State.SUCCEEDED
    assert world.times("pay:2000") == 1


@pytest.mark.parametrize("lost", ["EffectIntended", "ReceiptStored"])
def test_an_append_whose_acknowledgement_was_lost_is_not_made_twice(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """The statement commits; the worker is told that the connection is gone."""
    real, done = actions.write, list[int]()

    def write(state: RunState, events: Any, **more: Any) -> RunState:
        new: RunState = real(state, events, **more)
        if not done and type(events[0]).__name__ == lost:
            done.append(new.seq)
            _end_my_connection()
            connection.cursor().execute("select 1")
        return new

    monkeypatch.setattr(actions, "write", write)
    run = house.start()

    state = advance(run)

    assert state.state is State.SUCCEEDED
    assert done
    assert world.calls == ["pay:1042", "tell:1042"]
    assert kinds(run).count(lost) == 2  # one for each effect
    assert "EvidenceKept" not in kinds(run)


class Stopped(Exception):
    """The worker stands still between the call and its receipt."""


def _overtaken(world: World, run: Run, clock: Clock, *, before_call: bool = False) -> recovery.Held:
    """A worker that was stopped just before or after the outside did it, its lease over by now."""
    held = recovery.claim(run.pk)
    assert held is not None

    def hook(when: str) -> None:
        if when == ("before" if before_call else "after"):
            world.hook = None
            raise Stopped

    world.hook, real = hook, engine._called
    # The engine takes whatever a tool raises for an unclear answer: here the process itself stands still.
    engine._called = _stops_at_once
    try:
        with pytest.raises(Stopped):
            while engine._step(held):
                pass
    finally:
        engine._called = real
    clock.move(timedelta(seconds=10))
    return held


def _stops_at_once(held: recovery.Held, tool: Any, effect: Any, began: Any) -> Any:
    tool.call(recovery.call_of(effect, {}))
    raise AssertionError("the call came back")


def _late(held: recovery.Held, *, executed: bool, reference: str = "ref-pay:1042") -> None:
    """The receipt of the stopped worker comes after all."""
    if executed:
        held.evidence(
            lambda state, now, late: decide.executed(
                state, 1, reference=reference, evidence="{}", problem=None, versions={}, late=late
            )
        )
    else:
        held.evidence(
            lambda state, now, late: decide.refused_call(state, 1, detail="no", evidence="{}", late=late)
        )


def kept(run: Run) -> list[e.EvidenceKept]:
    return [x.event for x in log(run.pk) if isinstance(x.event, e.EvidenceKept)]


def test_an_older_holders_decision_fails(house: House, world: World, clock: Clock) -> None:
    run = house.start()
    held = _overtaken(world, run, clock)
    newer = recovery.claim(run.pk)
    assert newer is not None and newer.token == held.token + 1

    with pytest.raises(LeaseLost):
        held.decide(lambda state, now: (e.CancelRequested(note=""),))

    assert "CancelRequested" not in kinds(run)
    newer.__exit__(None, None, None)
    assert advance(run).state is State.SUCCEEDED


def test_an_older_holder_does_not_give_back_what_another_holds(
    house: House, world: World, clock: Clock
) -> None:
    run = house.start()
    held = _overtaken(world, run, clock)
    newer = recovery.claim(run.pk)
    assert newer is not None
    held.__exit__(None, None, None)

    assert recovery.claim(run.pk) is None
    newer.__exit__(None, None, None)


def test_an_older_holders_refusal_does_not_undo_what_a_later_send_did(
    house: House, world: World, clock: Clock
) -> None:
    """Refused then, sent again and executed now: if the old answer counted, it would be done in a new round."""
    run = house.start()
    held = _overtaken(world, run, clock, before_call=True)
    wait_until(lambda: advance(run).state is State.SUCCEEDED, within=timedelta(seconds=20))
    assert world.times("pay:1042") == 1

    _late(held, executed=False)

    assert load(run.pk).state is State.SUCCEEDED
    assert [k.contradicts for k in kept(run)] == [True]


def test_a_successor_sends_under_the_key_that_a_stopped_sender_may_still_use(
    house: House, world: World, clock: Clock
) -> None:
    """The outside said "not found", the run was restarted, the successor paid; then the old call comes through."""
    run = house.approved()
    held = _overtaken(world, run, clock, before_call=True)
    wait_until(lambda: advance(run).state is State.WAITING_APPROVAL, within=timedelta(seconds=20))
    old = load(run.pk).effects[1]
    assert old.status is EffectStatus.NOT_EXECUTED
    done = actions.restart_run(person=house.operator, run_id=run.pk, note="anew", submission=uuid4())
    successor = Run.objects.get(pk=done.run)
    advance(successor)
    house.decide(successor, house.approver)
    assert advance(successor).state is State.SUCCEEDED

    held.agent.writing("pay").call(recovery.call_of(old, {}))

    assert load(successor.pk).effects[1].key == old.key
    assert world.times("pay:2000") == 1


def test_a_late_receipt_moves_nothing_and_the_effect_is_reconciled(
    house: House, world: World, clock: Clock
) -> None:
    world.outage = "503"
    run = house.start()
    held = _overtaken(world, run, clock)
    assert advance(run).state is State.UNKNOWN

    _late(held, executed=True)

    state = load(run.pk)
    assert (state.state, state.effects[1].status) == (State.UNKNOWN, EffectStatus.UNKNOWN)
    assert kinds(run)[-1] == "EvidenceKept"
    world.outage = ""
    clock.move(timedelta(seconds=5))
    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:1042") == 1


def test_late_evidence_is_kept_on_a_run_that_is_over(house: House, world: World, clock: Clock) -> None:
    cases = [
        (ending, said)
        for ending in (State.SUCCEEDED, State.CANCELLED)
        for said in ("same", "refused", "twice")
    ]
    for number, (ending, said) in enumerate(cases):
        order = f"77{number}"
        run = house.start(order)
        held = _overtaken(world, run, clock)
        if ending is State.CANCELLED:
            house.cancel(run)
        state = advance(run)
        assert state.state is ending

        reference = f"ref-pay:{order}" if said == "same" else "ref-other"
        _late(held, executed=said != "refused", reference=reference)

        after = load(run.pk)
        assert after.state is ending
        assert after.effects[1].receipt == state.effects[1].receipt
        assert (ending, said, [k.contradicts for k in kept(run)]) == (ending, said, [said != "same"])


def test_a_contradiction_stops_an_open_run(house: House, world: World, clock: Clock) -> None:
    """The record says that it happened; then an older holder hears that it was refused."""
    run = house.start()
    held = _overtaken(world, run, clock)
    world.answers = ["refused"]  # the second effect: the run stops there, open
    state = advance(run)
    assert [r.code for r in state.reasons] == ["tool_failed"]

    _late(held, executed=False)

    state = load(run.pk)
    assert [r.code for r in state.reasons] == ["tool_failed", "effect_conflict"]
    assert state.effects[1].status is EffectStatus.CONFIRMED


def test_what_a_call_made_can_always_be_read_again(house: House, script: Script, world: World) -> None:
    script.answer = lambda call: Executed(
        reference="r", account="acct", evidence=[1e308, -0.0, "\u2028"], versions={"o\x00": "v\ud800"}
    )

    state = advance(house.start())

    assert state.state is State.SUCCEEDED
    assert state.produced == {"o\\u0000": "v\\ud800"}
