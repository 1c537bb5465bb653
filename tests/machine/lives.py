"""Lives of runs as logs: events in order, made with the machine's own functions, and the state they amount to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical, digest
from runs.machine.constraints import STANDS
from runs.machine.evolve import evolve
from runs.machine.projection import PROJECTED
from runs.machine.revalidate import Facts, Fresh, Person
from runs.machine.safety import Answered
from runs.machine.waits import PlanWait, WaitKind

T0 = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
WORKER = e.Actor(e.ActorKind.WORKER, "host:1", "host:1")
OPERATOR = e.Actor(e.ActorKind.PERSON, "p-operator", "Olga")
SENDER = e.Sender(host="host", boot="boot-a", pid=1, started="7", uptime=timedelta(seconds=1000))
TERMS = e.Terms(
    reversible=False,
    queryable=True,
    retention=timedelta(hours=10),
    dispatch_window=timedelta(seconds=5),
    timeout=timedelta(seconds=20),
    settle=timedelta(seconds=60),
    patience=timedelta(seconds=900),
)
WHOLE = TERMS.dispatch_window + TERMS.timeout + TERMS.settle
REST = s.PlanRest(tool="look_up", arguments='{"order":"7"}', resource="order:7", version="v1")
CHECKS = (e.Check(name="log", passed=True),)
PRINCIPAL = Person(id="p-operator", name="Olga")
SEEN = '{"order":"7"}'


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def step(name: str = "pay:7", operation: str = "pay:7", amount: str = "10.00", **more: Any) -> s.PlanStep:
    text = canonical({"amount": amount, "order": "7"})
    fields: dict[str, Any] = {
        "name": name, "tool": "pay", "system": "bank", "operation_id": operation, "arguments": text,
        "arguments_digest": digest("arguments", text), "title": f"pay {amount}", "reversible": False,
        "phrase": amount, "volatile": (), "cost": amount, "rests_on": (),
    }  # fmt: skip
    return s.PlanStep(**(fields | more))


TELL = step("tell:7", "tell:7", tool="tell", system="mail")
PROMISE = s.PlanPromise(text="tell the supplier", after="pay:7", by="tell:7", due=None)


def requirement(needed: int) -> decide.Requirement:
    return decide.Requirement(
        needed=needed, right="approve_plans", stands_for=timedelta(hours=1), policy_version="1"
    )


@dataclass
class Life:
    """A log under construction. `at` is the time of the next event."""

    log: list[e.Recorded] = field(default_factory=list)
    now: s.RunState | None = None
    at: datetime = T0

    @property
    def state(self) -> s.RunState:
        assert self.now is not None
        return self.now

    @property
    def effect(self) -> s.Effect:
        """The latest effect."""
        return self.state.effects[len(self.state.effects)]

    def take(self, *events: e.Event, by: e.Actor = WORKER) -> Life:
        for event in events:
            recorded = e.Recorded(len(self.log) + 1, self.at, by, event)
            self.now = evolve(self.now, recorded)
            self.log.append(recorded)
        return self

    def after(self, gap: timedelta) -> Life:
        self.at += gap
        return self


def planning(deadline: datetime | None = None) -> Life:
    term = e.Term(
        text="Pay only open orders.", source_kind="configuration", source_ref="x", source_version="1"
    )
    started = e.RunStarted(
        run="run_A", tenant="t", agent="payer", agent_version="1", goal="Pay", input=e.raw("{}"),
        creator="p-operator", principal="p-operator", lineage="run_A", start_key="k", constraints=(term,),
        deadline=deadline, projected=PROJECTED,
    )  # fmt: skip
    return Life().take(started, by=OPERATOR)


def observed(version: str = "v1", value: str = SEEN) -> e.ObservationRecorded:
    return e.ObservationRecorded(
        tool="look_up", arguments=e.raw(REST.arguments), value=e.raw(value), resource="order:7", version=version,
        observed_at=T0, half_life=timedelta(minutes=10),
    )  # fmt: skip


def plan_of(
    state: s.RunState, *steps: s.PlanStep, promises: tuple[s.PlanPromise, ...] = ()
) -> s.PlanDocument:
    return s.PlanDocument(
        run=state.identity.run, version=len(state.plans) + 1, goal_version=1,
        constraints_digest=decide.constraints_digest(state), policy_version="1", steps=steps or (step(),),
        promises=promises, assumptions=(),
    )  # fmt: skip


def proposed(
    life: Life, *steps: s.PlanStep, needed: int = 0, promises: tuple[s.PlanPromise, ...] = ()
) -> Sequence[e.Event]:
    plan = plan_of(life.state, *steps, promises=promises)
    number = len(life.state.requests) + 1
    return decide.proposed(
        life.state, plan, claim="fine", requirement=requirement(needed), request=f"r{number}", now=life.at
    )


def waiting(needed: int = 1, *steps: s.PlanStep) -> Life:
    life = planning().take(observed())
    return life.take(*proposed(life, *(steps or (step(rests_on=(REST,)),)), needed=needed))


def given(life: Life, person: str = "p-anna") -> e.ApprovalGiven:
    request = life.state.requests[-1]
    return e.ApprovalGiven(
        request=request.id, version=request.version, digest=request.digest, person=person, submission="s",
        reason="as agreed",
    )  # fmt: skip


def approved() -> Life:
    life = waiting()
    request = life.state.requests[-1]
    reached = e.PlanApproved(request=request.id, version=request.version, digest=request.digest)
    return life.take(given(life), reached, by=OPERATOR)


def executing(*steps: s.PlanStep, promises: tuple[s.PlanPromise, ...] = ()) -> Life:
    """Approved by policy, revalidated, nothing sent."""
    life = planning()
    return life.take(*proposed(life, *steps, promises=promises), e.RevalidationPassed(checks=CHECKS))


def send(life: Life) -> Sequence[e.Event]:
    return decide.next_send(life.state, terms=TERMS, account="acct", sender=SENDER, now=life.at)


def in_flight(*steps: s.PlanStep, promises: tuple[s.PlanPromise, ...] = ()) -> Life:
    life = executing(*steps, promises=promises)
    return life.take(*send(life))


def unknown(*steps: s.PlanStep) -> Life:
    life = in_flight(*steps)
    return life.take(*decide.found_open(life.state))


def stopped(code: str = "tool_failed") -> Life:
    return executing().take(*decide.human(code))


def receipt(
    life: Life, *, executed: bool = True, reference: str = "ref-1", late: bool = False
) -> Sequence[e.Event]:
    """What a call's answer leads to."""
    number = life.effect.number
    if not executed:
        return decide.refused_call(life.state, number, detail="no", evidence="{}", late=late)
    return decide.executed(
        life.state, number, reference=reference, evidence="{}", problem=None, versions={}, late=late
    )


def match(life: Life, **more: Any) -> e.MatchFound:
    effect = life.effect
    fields: dict[str, Any] = {
        "reference": "ref-1", "operation_id": effect.operation_id, "key": effect.key, "account": "acct",
        "final": True, "reversed": False, "arguments": e.raw(effect.arguments),
    }  # fmt: skip
    return e.MatchFound(**(fields | more))


def answer(
    *matches: e.MatchFound,
    failure: str | None = None,
    account: str = "acct",
    boot: str = "boot-a",
    uptime: timedelta = SENDER.uptime + WHOLE,
) -> Answered:
    """An answer, heard by default on the sender's host after everything declared has passed."""
    return Answered(failure=failure, matches=matches, account=account, boot=boot, uptime=uptime)


def asked(life: Life, said: Answered) -> Sequence[e.Event]:
    return decide.asked(life.state, life.effect.number, said, evidence="[]", problem=None, now=life.at)


def facts(**more: Any) -> Facts:
    """Everything is as it was."""
    fields: dict[str, Any] = {
        "code": "1", "constraints_now": {1: STANDS}, "principal": PRINCIPAL, "policy_version": "1",
        "fresh": {(REST.tool, REST.arguments): Fresh(value=SEEN, version="v1")},
    }  # fmt: skip
    return Facts(**(fields | more))


ANNA = Person(id="p-anna", name="Anna")


#: One life in each state.
LIVES: dict[s.State, Callable[[], Life]] = {
    s.State.PLANNING: planning,
    s.State.WAITING_APPROVAL: waiting,
    s.State.APPROVED: approved,
    s.State.EXECUTING: executing,
    s.State.WAITING: lambda: waits(),
    s.State.UNKNOWN: unknown,
    s.State.NEEDS_HUMAN: stopped,
    s.State.CANCELLING: lambda: planning().take(*decide.cancel(planning().state, note="")),
    s.State.COMPENSATING: lambda: compensating(),
    s.State.SUCCEEDED: lambda: _ended(),
    s.State.CANCELLED: lambda: _cancelled(),
    s.State.RESTARTED: lambda: _restarted(),
}


def wait_step(wait: PlanWait | None = None, name: str = "rest", cost: str | None = None) -> s.PlanStep:
    """A step that waits; for ten seconds where nothing is said."""
    wait = wait or PlanWait(kind=WaitKind.TIMER, length=seconds(10))
    text = canonical({k: v for k, v in msgspec.to_builtins(wait).items() if v not in (None, "", [])})
    return s.PlanStep(
        name=name, tool="", system="handoff", operation_id=f"wait:{name}", arguments=text,
        arguments_digest=digest("wait", text), title="wait", reversible=True, phrase="", volatile=(), cost=cost,
        rests_on=(), wait=wait,
    )  # fmt: skip


def waits(wait: PlanWait | None = None, *then: s.PlanStep, cost: str | None = None) -> Life:
    """A run whose first step waits."""
    life = executing(wait_step(wait, cost=cost), *then)
    return life.take(*decide.begin_wait(life.state, now=life.at))


def paid_and_stopped(*steps: s.PlanStep, undo: bool = True) -> Life:
    """Everything was done, a promise is open, and its end was asked for."""
    life = executing(*(steps or (step(), TELL)))
    for _ in life.state.remaining:
        life.take(*send(life))
        life.take(*receipt(life, reference=f"ref-{life.effect.number}"))
    return life.take(*decide.cancel(life.state, note="wrong order", undo=undo), by=OPERATOR)


def undo_step(life: Life, stands: e.Inherited) -> s.PlanStep:
    undoes = s.Undoes(run=stands.run, effect=stands.effect)
    name = f"undo:{stands.operation_id}"
    return step(name, name, tool="take_back", undoes=undoes, cost=None)


def undo_planned(life: Life, needed: int = 0) -> Sequence[e.Event]:
    """What code proposes for a run that is being undone."""
    steps = tuple(undo_step(life, x) for x in reversed(decide.standing(life.state)))
    plan = replace(plan_of(life.state, *steps), undo=True)
    number = len(life.state.requests) + 1
    return decide.proposed(
        life.state, plan, claim="", requirement=requirement(needed), request=f"r{number}", now=life.at
    )


def compensating(*steps: s.PlanStep) -> Life:
    """The plan that undoes passed its checks; nothing was undone yet."""
    life = paid_and_stopped(*steps)
    return life.take(*undo_planned(life), e.RevalidationPassed(checks=CHECKS))


def _restarted() -> Life:
    life = LIVES[s.State.NEEDS_HUMAN]()
    return life.take(*decide.restarted(life.state, successor="run_NEXT", note="it cannot go on"))


def _ended() -> Life:
    life = in_flight()
    life.take(*receipt(life))
    return life.take(*decide.finished(life.state))


def _cancelled() -> Life:
    life = LIVES[s.State.CANCELLING]()
    return life.take(*decide.finish_cancel(life.state))
