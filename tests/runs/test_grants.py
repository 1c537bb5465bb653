"""What a principal lent: asked afresh at each send, used up by what is sent on it, lent anew with a new approval."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from uuid import uuid4

import msgspec
import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import DatabaseError, connections, transaction

from accounts.models import User
from accounts.rights import Right, grant_right, withdraw_right
from approvals.policy import Party
from runs import actions, agents, engine, facts, grants, recovery
from runs.clock import database_now
from runs.host import sender
from runs.ledger import SendRefused, append, load
from runs.machine import decide
from runs.machine import events as e
from runs.machine.state import EffectStatus, RunState, State
from runs.machine.transitions import Refused
from runs.models import Event, Grant, GrantBalance, Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance, assert_replays
from tests.runs.scripted import Script, pay, plan
from tests.runs.test_planning import codes

ALL = ("pay", "tell", "runs")
ROUNDS = 100
RACES = 200
AtOnce = Callable[..., list[object]]
WORKER = e.Actor(e.ActorKind.WORKER, "w", "w")


def lent(house: House, **more: object) -> Grant:
    known = {"principal": house.operator, "agent": house.agent, "scopes": ALL, "now": database_now()} | more
    return grants.lend(**known)  # type: ignore[arg-type]


def start(house: House, grant: Grant, order: str = "1042", amount: str = "50.00") -> Run:
    return actions.start_run(
        agent=house.agent, version="1", goal=f"Pay order {order}", input={"order": order, "amount": amount},
        start_key=str(uuid4()), creator=house.operator, principal=house.operator, grant=grant,
    )  # fmt: skip


def used(grant: Grant) -> Decimal:
    return GrantBalance.objects.get(grant=grant).used


def balanced(*grants_: Grant) -> None:
    """What PostgreSQL keeps is what the logs of all runs on the grant amount to."""
    for grant in grants_:
        states = [assert_replays(run) for run in Run.objects.all()]
        held = (EffectStatus.IN_FLIGHT, EffectStatus.UNKNOWN, EffectStatus.CONFIRMED)
        costs = [
            Decimal(x.cost)
            for state in states
            for x in state.effects.values()
            if x.grant == str(grant.pk) and x.cost is not None and x.status in held
        ]
        assert used(grant) == sum(costs, Decimal())


def why(state: RunState) -> list[tuple[str, str]]:
    return [(r.code, r.evidence) for r in state.reasons]


def test_a_start_lends_and_its_event_holds_no_credential(house: House, world: World) -> None:
    session = SessionStore()
    session.save()
    run = start(house, lent(house, session_key=session.session_key, budget=Decimal("200.00")))

    body = Event.objects.get(run=run, seq=1).body or ""

    assert str(run.grant_id or Run.objects.get(pk=run.pk).grant_id) in body
    assert session.session_key is not None and session.session_key not in body
    assert advance(run).state is State.SUCCEEDED
    state = load(run.pk)
    assert state.lendings[0].lent.bound and state.lendings[0].lent.budget == "200.00"
    assert {x.grant for x in state.effects.values()} == {state.grant}


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ("ended", "ended"),
        ("expired", "expired"),
        ("session", "session_closed"),
        ("scope", "out_of_scope"),
        ("right", "may_not_lend"),
    ],
)
def test_what_is_lost_stops_the_send_and_lending_anew_asks_a_person_again(
    house: House, world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch, lost: str, said: str
) -> None:
    """Between the checks before the run goes on and the send: the send's own transaction finds it."""
    session = SessionStore()
    session.save()
    grant = lent(
        house,
        session_key=session.session_key if lost == "session" else "",
        scopes=("tell",) if lost == "scope" else ALL,
        expires_at=database_now() + timedelta(hours=1),
    )
    run, take = start(house, grant), {
        "ended": lambda: end(house, grant),
        "expired": lambda: clock.move(timedelta(hours=2)),
        "session": session.delete,
        "scope": lambda: None,
        "right": lambda: withdraw_right(
            to=house.operator, right=Right.START_RUNS, obj=house.agent, actor=None, now=database_now()
        ),
    }[lost]  # fmt: skip
    monkeypatch.setattr(engine, "_send", _first(take, engine._send))

    state = advance(run)

    assert why(state) == [("authority_lost", said)]
    assert world.calls == []
    if lost == "right":
        grant_right(
            to=house.operator, right=Right.START_RUNS, obj=house.agent, actor=None, now=database_now()
        )
        assert Grant.objects.get(pk=grant.pk).ended_at, "what is given back is a new permission"
    before, state = state.grant, house.lend(run)
    assert (state.state, state.reasons) == (State.EXECUTING if lost != "scope" else State.APPROVED, ())
    state = advance(run)
    assert (state.state, state.plans[0].by_policy) == (State.WAITING_APPROVAL, False)
    assert world.calls == []
    named = (
        next(c for c in state.revalidation.checks if c.subject == "reentry") if state.revalidation else None
    )
    assert named and (named.was, named.now) == (before, state.grant)
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED
    assert world.times("pay:1042") == 1


def _first(work: object, then: object) -> object:
    """Do the work once before the function, which then does as before."""
    left = [work]

    def called(*arguments: object) -> object:
        if left:
            left.pop()()  # type: ignore[operator]
        return then(*arguments)  # type: ignore[operator]

    return called


def end(house: House, grant: Grant, person: User | None = None) -> Grant:
    impact = grants.impact_of(grant).digest
    return actions.end_grant(
        person=person or house.operator, grant=grant.pk, why="not needed", impact=impact, submission=uuid4()
    )


def test_an_old_approval_that_still_matches_is_voided_by_a_new_grant(house: House, world: World) -> None:
    run = house.approved()
    end(house, Grant.objects.get(runs=run))
    assert codes(advance(run)) == ["authority_lost"]
    was = load(run.pk).grant

    now = house.lend(run).grant
    state = advance(run)

    assert state.state is State.WAITING_APPROVAL
    assert [(c.what, c.was, c.now) for c in state.requests[0].causes] == [("grant", was, now)]
    assert state.requests[0].digest == state.requests[1].digest, "the plan is the same, to the byte"
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED


def test_who_lends_anew_becomes_the_principal_and_cannot_approve(
    house: House, script: Script, world: World
) -> None:
    script.needed, script.party = 1, Party.PRINCIPAL
    run = house.waiting()
    house.decide(run, house.approver)
    end(house, Grant.objects.get(runs=run))
    advance(run)
    with pytest.raises(Refused):
        house.lend(house.start("7"))
    grant_right(to=house.approver, right=Right.START_RUNS, obj=house.agent, actor=None, now=database_now())
    actions.lend_anew(person=house.approver, run_id=run.pk, scopes=ALL, note="", submission=uuid4())

    state = advance(run)

    assert state.principal == str(house.approver.pk)
    assert str(house.approver.pk) in state.requests[-1].excluded


def test_a_budget_is_reserved_settled_and_released(house: House, world: World) -> None:
    grant = lent(house, budget=Decimal("240.00"))
    assert advance(start(house, grant, "1")).state is State.SUCCEEDED
    assert used(grant) == 100
    world.answers = ["refused"]
    assert codes(advance(start(house, grant, "2"))) == ["tool_failed"]
    assert used(grant) == 100, "what did not happen is released"
    third = start(house, grant, "3", "70.01")
    assert why(advance(third)) == [("budget_exhausted", "-0.02")]
    assert world.times("pay:3") == 0
    assert advance(start(house, grant, "4")).state is State.SUCCEEDED
    balanced(grant)

    house.lend(third, "150.00")
    assert advance(third).state is State.WAITING_APPROVAL
    house.decide(third, house.approver)
    assert advance(third).state is State.SUCCEEDED
    balanced(grant, Grant.objects.get(runs=third))


@pytest.fixture
def long_runs(house: House, script: Script, clock: Clock) -> list[Run]:
    """Two runs with a step for each round, all checks passed, nothing sent."""
    made = []
    for name in ("a", "b"):
        steps = [pay(f"pay:{name}{n}", order=f"{name}{n}", amount="1.00") for n in range(RACES)]
        script.proposals = [plan(*steps)]
        run = house.start(name)
        held = recovery.claim(run.pk)
        assert held is not None
        while held.state.state is not State.EXECUTING:
            assert engine._step(held)
        held.__exit__(None, None, None)
        made.append(run)
    return made


def sent(state: RunState, run: Run, grant: Grant) -> RunState | str:
    """The intent of the next step on that grant, in its own transaction; or which check refused it."""
    step = state.remaining[0]
    tool = agents.registered()[("payer", "1")].writing(step.tool)
    now = database_now()
    (intent,) = decide.next_send(
        state, terms=engine.terms_of(tool), account=tool.account, sender=sender(), now=max(now, state.at)
    )
    assert isinstance(intent, e.EffectIntended)
    known = facts.guard_of(state, run, step.system, step.operation_id, scopes=(step.tool,), cost="1.00")
    guard = replace(known, grant=str(grant.pk))
    try:
        on_it = msgspec.structs.replace(intent, grant=str(grant.pk))
        return append(state, [on_it], actor=WORKER, now=now, guard=guard)
    except SendRefused as refused:
        return refused.check


def answered(state: RunState) -> RunState:
    number = len(state.effects)
    events = decide.executed(
        state, number, reference=f"ref-{number}", evidence="{}", problem=None, versions={}
    )
    return append(state, events, actor=WORKER, now=database_now())


@pytest.fixture
def at_once() -> Iterator[AtOnce]:
    """Does two things begun together, each in a thread that keeps its connection; gives what they returned."""
    gate = threading.Barrier(2, timeout=60)

    def run(work: Callable[[], object]) -> object:
        gate.wait()
        return work()

    with ThreadPoolExecutor(2) as pool:
        yield lambda *works: [done.result(60) for done in [pool.submit(run, work) for work in works]]
        for done in [pool.submit(run, connections.close_all) for _ in range(2)]:
            done.result(60)


def test_the_last_money_is_spent_once(
    house: House, world: World, long_runs: list[Run], at_once: AtOnce
) -> None:
    """Two runs on one grant, and money for one of them: exactly one send is committed, each time."""
    states, firsts, last = [load(run.pk) for run in long_runs], set[int](), None
    for _ in range(ROUNDS):
        last = lent(house, budget=Decimal("1.00"))
        outcomes = at_once(
            *(partial(sent, state, run, last) for state, run in zip(states, long_runs, strict=True))
        )
        won = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, RunState)]
        assert [x for x in outcomes if not isinstance(x, RunState)] == ["budget"]
        firsts.update(won)
        assert used(last) == 1
        winner = outcomes[won[0]]
        assert isinstance(winner, RunState)
        states[won[0]] = answered(winner)
    assert firsts == {0, 1}, "one side always came first"
    assert last is not None
    balanced(last)


def test_the_end_of_a_grant_racing_a_send(
    house: House, world: World, long_runs: list[Run], at_once: AtOnce
) -> None:
    """Each time either the send was committed before the end, or nothing was sent after its commit."""
    run, won = long_runs[0], 0
    state = load(run.pk)
    for number in range(RACES):
        grant, take = _takeable(house, number)
        outcome, seen = at_once(partial(sent, state, run, grant), lambda take=take: (take(), _sends(run))[1])
        was_sent = isinstance(outcome, RunState)
        assert was_sent or outcome == "authority"
        assert _sends(run) == seen, "sent after the commit that ended it"
        if isinstance(outcome, RunState):
            won += 1
            state = answered(outcome)
    assert 0 < won < RACES, f"one side always came first: {won}"
    assert len(assert_replays(run).effects) == won


def _takeable(house: House, number: int) -> tuple[Grant, Callable[[], object]]:
    """A grant, and one of the ways in which it ends."""
    if number % 2:
        session = SessionStore()
        session.save()
        return lent(house, session_key=session.session_key), session.delete
    grant = lent(house)
    return grant, lambda: end(house, grant)


def _sends(run: Run) -> int:
    return Event.objects.filter(run=run, type="EffectIntended").count()


def test_a_grant_is_fixed_but_for_its_end(house: House) -> None:
    grant = lent(house, budget=Decimal("5.00"))
    for changed in ({"budget": Decimal("50.00")}, {"expires_at": database_now()}, {"scopes": ["mail"]}):
        with pytest.raises(DatabaseError), transaction.atomic():
            Grant.objects.filter(pk=grant.pk).update(**changed)
    end(house, grant)
    for change in ({"ended_at": None}, {"why": "other"}):
        with pytest.raises(DatabaseError), transaction.atomic():
            Grant.objects.filter(pk=grant.pk).update(**change)
    with pytest.raises(DatabaseError), transaction.atomic():
        Grant.objects.filter(pk=grant.pk).delete()


def test_who_may_end_a_grant_and_what_its_end_stops(house: House, world: World) -> None:
    run = house.waiting()
    grant = Grant.objects.get(runs=run)
    impact = grants.impact_of(grant)
    assert ([r.pk for r in impact.runs], len(impact.requests)) == ([run.pk], 1)
    with pytest.raises(grants.MayNotEnd):
        end(house, grant, house.viewer)
    with pytest.raises(grants.GrantNotFound):
        end(house, grant, house.stranger)
    other = start(house, grant, "77")
    with pytest.raises(actions.ImpactChanged) as refused:
        actions.end_grant(
            person=house.operator, grant=grant.pk, why="no", impact=impact.digest, submission=uuid4()
        )
    assert [r.pk for r in refused.value.now.runs] == sorted([run.pk, other.pk])
    assert Grant.objects.get(pk=grant.pk).ended_at is None

    ended = end(house, grant)

    assert (ended.by, ended.why) == (house.operator, "not needed")
    with pytest.raises(actions.GrantOver):
        end(house, grant)


def test_a_run_that_asks_for_approval_stops_at_the_end_of_its_grant_and_asks_again(
    house: House, world: World
) -> None:
    """Found by the sweep, without a worker. The request from before is void, and names both grants."""
    run = house.waiting()
    was = load(run.pk).grant
    end(house, Grant.objects.get(runs=run))

    recovery.sweep()

    state = assert_replays(run)
    assert (state.state, why(state)) == (State.NEEDS_HUMAN, [("authority_lost", "ended")])
    now = house.lend(run).grant
    state = advance(run)
    assert state.state is State.WAITING_APPROVAL
    assert [(c.what, c.was, c.now) for c in state.requests[0].causes] == [("grant", was, now)]
    house.decide(run, house.approver)
    assert advance(run).state is State.SUCCEEDED


def test_a_run_with_nothing_left_to_approve_ends_on_what_was_lent_anew(
    house: House, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last step is a wait, during which the grant ends: once lent to, it asks nobody, and does not ask for ever."""
    run = house.scripted([{"tool": "tell", "order": "1"}, {"signal": "go", "name": "answer"}])
    end(house, Grant.objects.get(runs=run))
    house.answer(run, "go")
    assert why(advance(run)) == [("authority_lost", "ended")]

    house.lend(run)
    monkeypatch.setattr(engine, "_step", _at_most(10, engine._step))
    state = advance(run)

    assert (state.state, state.requests) == (State.SUCCEEDED, ())
    assert world.times("tell:1") == 1


def _at_most(times: int, then: Callable[..., bool]) -> Callable[..., bool]:
    """The function, which may be called so often and no more."""
    left = iter(range(times))

    def called(*arguments: object) -> bool:
        assert next(left, None) is not None, f"it does not end after {times} steps"
        return then(*arguments)

    return called


@pytest.mark.parametrize("how", ["expired", "session"])
def test_the_sweep_finds_every_end(house: House, world: World, clock: Clock, how: str) -> None:
    session = SessionStore()
    session.save()
    key = session.session_key if how == "session" else ""
    run = start(
        house, lent(house, session_key=key, expires_at=database_now() + timedelta(seconds=9)), amount="500.00"
    )
    assert advance(run).state is State.WAITING_APPROVAL
    assert actions.unlent_runs(9) == []
    if how == "session":
        session.delete()
    else:
        clock.move(timedelta(seconds=10))
    assert actions.unlent_runs(9) == [run.pk]
    recovery.sweep()
    assert codes(assert_replays(run)) == ["authority_lost"]
    assert actions.unlent_runs(9) == []


def test_checks_made_on_request_are_kept_and_move_nothing(house: House, world: World) -> None:
    run = house.waiting()
    before = Run.objects.filter(pk=run.pk).values("state", "wake_at", "lease_token").get()
    state = load(run.pk)
    reads = facts.read_needed(state, agents.registered()[("payer", "1")], database_now())

    actions.check_now(
        person=house.operator, run_id=run.pk, reads={k: r.fresh for k, r in reads.items()}, submission=uuid4()
    )

    assert Run.objects.filter(pk=run.pk).values("state", "wake_at", "lease_token").get() == before
    state = assert_replays(run)
    assert state.checked and state.checked.passed
    assert {"log", "authority", "budget"} - {c.name for c in state.checked.checks} <= {"budget"}
    assert state.revalidation is None, "nothing rests on a report that a person asked for"
