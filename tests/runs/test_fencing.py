"""Two at once, one of them stopped, a clock that steps, a database that goes away: one effect, and no receipt lost."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from django.db import connection, connections
from psycopg import sql
from pytest_django import Settings

from accounts.models import Membership, Tenant, User
from accounts.rights import Right, grant_right
from approvals.models import Request
from runs import actions, agents, engine, facts, recovery
from runs.clock import database_now
from runs.host import sender
from runs.ledger import RunChangedMeanwhile, SendRefused, append, load, log
from runs.machine import decide
from runs.machine import events as e
from runs.machine.state import EffectStatus, RunState, State
from runs.machine.transitions import Refused
from runs.models import Agent, Event, Run
from tests.accounts.world import wait_until
from tests.fixtures.clock import Clock
from tests.fixtures.database import LiveDatabase
from tests.matrix.outside import Outside, serving
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.scripted import Script, pay, plan
from tests.runs.test_evidence import kinds
from tests.runs.test_planning import codes
from tests.runs.test_sends import give_back, withdraw

RACES = 500
CANCELS = 24
VOIDS = 12
HELD_BACK = timedelta(minutes=-10)


def _active(person: User, active: bool) -> Callable[[], object]:
    return lambda: User.objects.filter(pk=person.pk).update(is_active=active)


def _member(person: User, active: bool) -> Callable[[], object]:
    return lambda: Membership.objects.filter(user=person).update(active=active)


def withdrawals(house: House) -> list[tuple[str, Callable[[], object], Callable[[], object]]]:
    """Everything that a send rests on: what refuses it then, how it is taken away, how it is given back."""
    return [
        ("approvers", lambda: withdraw(house, house.approver), lambda: give_back(house, house.approver)),
        ("approvers", _active(house.approver, False), _active(house.approver, True)),
        ("authority", _member(house.operator, False), _member(house.operator, True)),
        ("authority", _active(house.operator, False), _active(house.operator, True)),
    ]


def _sends(run: Run) -> int:
    return Event.objects.filter(run=run, type__in=["EffectIntended", "EffectSent"]).count()


@pytest.fixture
def long_plan(house: House, script: Script, clock: Clock) -> Run:
    """An approved run with a step for each race, all checks passed, nothing sent."""
    script.needed = 1
    script.proposals = [plan(*(pay(f"pay:{n}", order=str(n), amount="1.00") for n in range(RACES)))]
    run = house.waiting()
    house.decide(run, house.approver)
    clock.move(timedelta(hours=-1))  # the approval outlasts the test
    _append(load(run.pk), [e.RevalidationPassed(checks=(e.Check(name="log", passed=True),))])
    return run


def _append(state: RunState, events: list[e.Event]) -> RunState:
    return append(state, events, actor=e.Actor(e.ActorKind.WORKER, "w", "w"), now=database_now())


def test_a_withdrawal_racing_a_send_five_hundred_times(house: House, long_plan: Run, world: World) -> None:
    """Each time either the send was committed before the withdrawal, or nothing was sent after its commit."""
    kinds_of, seen = withdrawals(house), list[int]()
    gate = threading.Barrier(2, timeout=60)

    def withdrawing() -> None:
        try:
            for _, take, _ in itertools.islice(itertools.cycle(kinds_of), RACES):
                gate.wait()
                take()
                seen.append(_sends(long_plan))
                gate.wait()
                gate.wait()  # until it was given back
        except BaseException:
            gate.abort()
            raise
        finally:
            connections.close_all()

    thread = threading.Thread(target=withdrawing)
    thread.start()
    state, won, sent = load(long_plan.pk), 0, list[int]()
    for expected, _, back in itertools.islice(itertools.cycle(kinds_of), RACES):
        gate.wait()
        before, state = state.seq, _send(state, long_plan, expected)
        gate.wait()
        sent.append(_sends(long_plan))
        back()
        if state.seq > before:
            won += 1
            state = _append(state, [*_answered(state)])
        gate.wait()
    thread.join(60)

    assert sent == seen
    assert 0 < won < RACES, f"one side always came first: {won}"
    assert len(assert_replays(long_plan).effects) == won


def _send(state: RunState, run: Run, expected: str) -> RunState:
    """The intent of the next step in its own transaction; the state as it was where that refuses it."""
    step = state.remaining[0]
    tool = agents.registered()[("payer", "1")].writing(step.tool)
    # As of a run from before grants were recorded: the end of a grant has its own test, and ends it for good.
    guard = replace(facts.guard_of(state, run, step.system, step.operation_id), grant=None)
    now = database_now()
    events = decide.next_send(
        state,
        terms=engine.terms_of(tool),
        account=tool.account,
        sender=sender(),
        now=max(now, state.at),
    )
    try:
        return append(state, events, actor=e.Actor(e.ActorKind.WORKER, "w", "w"), now=now, guard=guard)
    except SendRefused as refused:
        assert refused.check == expected
        return state


def _answered(state: RunState) -> tuple[e.Event, ...]:
    number = len(state.effects)
    return tuple(
        decide.executed(state, number, reference=f"ref-{number}", evidence="{}", problem=None, versions={})
    )


def test_an_approval_that_is_voided_while_it_is_sent(
    house: House, script: Script, world: World, clock: Clock
) -> None:
    """The void is an append to the same run: of the two, one comes first and the other finds it."""
    script.needed = 1
    outcomes = set[str]()
    for number in range(VOIDS):
        script.proposals = [plan(pay(f"pay:v{number}", order=f"v{number}", amount="1.00"))]
        run = house.waiting()
        house.decide(run, house.approver)
        held = recovery.claim(run.pk)
        assert held is not None
        _ready(held)

        def void(run: Run = run) -> None:
            state = load(run.pk)
            request = Request.objects.get(pk=state.requests[-1].id)
            cause = e.Cause(what="goal", subject="", was="1", now="2")
            voided = e.ApprovalVoided(request=str(request.pk), version=1, causes=(cause,))
            try:
                actions.write(
                    state, [voided], run=run, actor=e.Actor(e.ActorKind.SYSTEM, "s", "s"), now=database_now()
                )
            except RunChangedMeanwhile:
                outcomes.add("sent first")

        _at_once(partial(engine._step, held), void)
        told = kinds(run)
        if "ApprovalVoided" in told and "EffectIntended" in told:
            assert told.index("EffectIntended") < told.index("ApprovalVoided")
        elif "ApprovalVoided" in told:
            outcomes.add("voided first")
            assert f"pay:v{number}" not in world.calls
        held.__exit__(None, None, None)
        assert world.times(f"pay:v{number}") <= 1
    assert outcomes


def test_a_cancel_racing_a_send(house: House, world: World) -> None:
    """Either the send was first, and is carried through, or nothing is called any more."""
    first, ahead = (
        {"send": 0, "cancel": 0},
        0.0,
    )  # how long the send waits, so that the two come close together
    for number in range(CANCELS):
        run = house.start(order=f"c{number}")
        held = recovery.claim(run.pk)
        assert held is not None
        _ready(held)

        def cancel(run: Run = run) -> None:
            with suppress(Refused):  # it was over already
                actions.cancel_run(
                    person=house.operator, run_id=run.pk, note="not needed", submission=uuid4()
                )

        def move(held: recovery.Held = held, wait: float = ahead) -> None:
            time.sleep(wait)
            while engine._step(held):
                pass

        _at_once(move, cancel)
        held.__exit__(None, None, None)
        state, told = advance(run), kinds(run)
        assert state.state in (State.CANCELLED, State.SUCCEEDED)
        sent = told.index("EffectIntended") if "EffectIntended" in told else len(told)
        asked = told.index("CancelRequested") if "CancelRequested" in told else len(told)
        first["send" if sent < asked else "cancel"] += 1
        ahead = ahead + 0.004 if sent < asked else max(0.0, ahead - 0.004)
        assert world.times(f"pay:c{number}") == (1 if sent < len(told) else 0)
        assert "EffectIntended" not in told[asked:], told
        assert told.count("ReceiptStored") == told.count("EffectIntended")
    assert all(first.values()), f"one side always came first: {first}"


def _ready(held: recovery.Held) -> None:
    """Move the run up to its first send."""
    while not (held.state.state is State.EXECUTING and held.validated(held.state)):
        assert engine._step(held)


def _at_once(*works: Callable[[], object]) -> None:
    """Each in a thread of its own, begun together. What one raises fails the test."""
    gate, failed = threading.Barrier(len(works), timeout=30), list[BaseException]()

    def run(work: Callable[[], object]) -> None:
        connection.ensure_connection()
        gate.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001  whatever it is, the test fails of it
            failed.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failed == []


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    with serving() as served:
        monkeypatch.setenv("MATRIX_URL", served.url)
        yield served


@pytest.fixture
def stopped(
    live_db: LiveDatabase, settings: Settings, outside: Outside, tmp_path: Path
) -> Iterator[Callable[[str], tuple[Run, subprocess.Popen[bytes]]]]:
    """Start a run of a kind of tool, and a worker for it that stops itself right before the socket."""
    settings.HANDOFF_AGENTS = ["tests.matrix.agent:AGENT"]
    agents.registered.cache_clear()
    tenant = Tenant.objects.create(slug="matrix", name="Matrix")
    person = User.objects.create_user(username="starter")
    Membership.objects.create(user=person, tenant=tenant)
    agent = Agent.objects.create(tenant=tenant, name="matrix", title="Matrix")
    grant_right(to=person, right=Right.START_RUNS, obj=agent, actor=None, now=database_now())
    environment = {
        **os.environ, "DATABASE_URL": live_db.url, "HANDOFF_AGENTS": "tests.matrix.agent:AGENT",
        "HANDOFF_ROLE": "worker", "HANDOFF_PROFILE": "test", "DJANGO_SETTINGS_MODULE": "console.settings",
        "HANDOFF_HOME": str(tmp_path),
    }  # fmt: skip
    workers = []

    def start(kind: str) -> tuple[Run, subprocess.Popen[bytes]]:
        run = actions.start_run(
            agent=agent, version="1", goal=kind, input={"kind": kind, "thing": kind}, start_key=kind,
            creator=person, principal=person, wake=False,
        )  # fmt: skip
        argv = [sys.executable, "-m", "tests.runs.stopped_worker", run.pk]
        worker = subprocess.Popen(argv, env=environment)
        workers.append(worker)
        wait_until(lambda: _stands_still(worker.pid), within=timedelta(seconds=60))
        return run, worker

    yield start
    for worker in workers:
        worker.kill()
        worker.wait(10)
    agents.registered.cache_clear()


def _stands_still(pid: int) -> bool:
    text = Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2] == "T"


Stopped = Callable[[str], tuple[Run, subprocess.Popen[bytes]]]


def test_a_process_that_is_continued_after_another_sent_does_nothing_twice(
    stopped: Stopped, outside: Outside
) -> None:
    """Its key is honoured: another holder sends meanwhile, and what the first then sends is the same."""
    run, worker = stopped("both")
    assert outside.calls == []
    wait_until(lambda: advance(run).state is State.SUCCEEDED, within=timedelta(seconds=60))
    assert len(outside.found("do:both")) == 1

    worker.send_signal(signal.SIGCONT)

    assert worker.wait(30) == 0
    assert outside.calls == ["do:both", "do:both"]
    assert len(outside.found("do:both")) == 1
    state = assert_replays(run)
    assert (state.state, state.reasons) == (State.SUCCEEDED, ())
    assert kinds(run)[-1] == "EvidenceKept"


def test_a_process_that_only_stands_still_keeps_others_from_sending(
    stopped: Stopped, outside: Outside
) -> None:
    """Keys are not honoured: while it may still send, nobody else does by itself; what it then did is found."""
    run, worker = stopped("query")
    wait_until(lambda: advance(run).state is State.NEEDS_HUMAN, within=timedelta(seconds=60))
    assert codes(load(run.pk)) == ["effect_unknown"]
    assert outside.calls == []

    worker.send_signal(signal.SIGCONT)

    assert worker.wait(30) == 0
    assert len(outside.found("do:query")) == 1
    state = assert_replays(run)
    assert (state.state, state.effects[1].status) == (State.NEEDS_HUMAN, EffectStatus.UNKNOWN)
    assert [(x.executed, x.reference) for x in state.effects[1].late] == [(True, "ref-do:query")]


def test_a_clock_that_steps_ahead_makes_nobody_believe_too_early(
    house: House, world: World, clock: Clock
) -> None:
    """By the database it is long settled; by the asker's own clock the call may still be under way."""
    world.answers, world.visible = ["lost"], False
    world.hook = _once(world, "after", lambda: clock.move(timedelta(minutes=10)))
    run = house.start()

    state = advance(run)

    assert (state.state, state.effects[1].asks[-1].matches) == (State.UNKNOWN, ())
    assert state.effects[1].asks[-1].at > state.effects[1].settled_at
    clock.move(timedelta(seconds=5))
    assert advance(run).effects[1].status is EffectStatus.UNKNOWN, "heard again, too soon by its own clock"
    world.visible = True
    clock.move(timedelta(seconds=5))
    assert advance(run).state is State.SUCCEEDED
    assert world.calls == ["pay:1042", "tell:1042"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_clock_that_steps_back_loses_and_repeats_nothing(
    house: House, world: World, clock: Clock, when: str
) -> None:
    world.hook = _once(world, when, lambda: clock.move(HELD_BACK))
    run = house.start()

    state = advance(run)

    assert state.state is State.SUCCEEDED
    assert world.calls == ["pay:1042", "tell:1042"]
    times = [r.at for r in log(run.pk)]
    assert times == sorted(times)
    assert kinds(run).count("ReceiptStored") == 2 and "EvidenceKept" not in kinds(run)


def _once(world: World, when: str, work: Callable[[], object]) -> Callable[[str], None]:
    def hook(now: str) -> None:
        if now == when:
            world.hook = None
            work()

    return hook


@contextmanager
def _elsewhere() -> Iterator[psycopg.Connection]:
    """A session beside the database in use, which stays when that one takes no sessions."""
    with closing(
        psycopg.connect(**{**connection.get_connection_params(), "dbname": "postgres"}, autocommit=True)
    ) as it:
        yield it


def _away_for(seconds: float) -> None:
    """The database takes no session for a while, and ends those that it has."""
    name = str(connection.settings_dict["NAME"])
    with _elsewhere() as other:
        other.execute(sql.SQL("alter database {} allow_connections false").format(sql.Identifier(name)))
    _end_my_connection_from_outside(name)

    def back() -> None:
        time.sleep(seconds)
        with closing(psycopg.connect(**parameters, autocommit=True)) as other:
            other.execute(sql.SQL("alter database {} allow_connections true").format(sql.Identifier(name)))

    parameters = {**connection.get_connection_params(), "dbname": "postgres"}
    threading.Thread(target=back).start()


def _end_my_connection_from_outside(name: str) -> None:
    with _elsewhere() as other:
        other.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])


def test_a_receipt_outlasts_a_database_that_is_away(house: House, world: World) -> None:
    """Between the call and its receipt the database takes no connection at all for a while."""
    world.hook = _once(world, "after", lambda: _away_for(1.5))
    run = house.start()

    wait_until(lambda: advance(run).state is State.SUCCEEDED, within=timedelta(seconds=30))

    receipt = load(run.pk).effects[1].receipt
    assert receipt is not None and receipt.source == "call"
    assert world.calls == ["pay:1042", "tell:1042"]
