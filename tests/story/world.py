"""The demo's agent, people and outside world for tests with real workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from accounts.models import User
from approvals.models import Request, Verdict
from examples.refunds.demo.people import APPROVER, OPERATOR, PEOPLE, SECOND, make_house
from examples.refunds.starting import start_from_csv
from runs import actions, agents, engine, recovery
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import RunState, State
from runs.models import Agent, Run
from tests.examples.outside import Outside
from tests.people import assert_replays

PATIENCE = 40.0  # seconds: what a run may take at most, start of the workers included
HEADER = "order,supplier,email,amount,currency,ticket\n"


@dataclass
class Story:
    """People, an agent, and a service of their own."""

    agent: Agent
    people: dict[str, User]
    outside: Outside

    @property
    def operator(self) -> User:
        return self.people[OPERATOR.username]

    @property
    def approver(self) -> User:
        return self.people[APPROVER.username]

    @property
    def second(self) -> User:
        return self.people[SECOND.username]

    def start(self, order: str, amount: str = "50.00") -> Run:
        """Load the order and start its run, as the upload does."""
        self.outside.load(order, amount)
        line = f"{order},Nord GmbH,pay@nord.example,{amount},EUR,T-{order}\n"
        started = start_from_csv(
            data=(HEADER + line).encode(), agent=self.agent, creator=self.operator, principal=self.operator
        )
        return started.runs[0]

    def waiting(self, order: str, amount: str = "120.00") -> Run:
        """A run whose plan waits for approval."""
        run = self.start(order, amount)

        def there() -> bool:
            engine.advance(run.pk)  # again, where a busy machine was too slow to read the order in time
            return load(run.pk).state is State.WAITING_APPROVAL

        until(there, what=lambda: _told(run))
        return run

    def approve(self, run: Run, person: User | None = None) -> None:
        """Approve what the run asks for now."""
        request = Request.objects.get(subject__startswith=f"{run.pk}:", state="pending")
        actions.decide_plan(
            person=person or self.approver, run_id=run.pk, version=int(request.subject.split(":")[1]),
            verdict=Verdict.APPROVE, reason="as agreed", digest=request.digest,
            conditions_digest=request.conditions_digest, submission=uuid4(),
            signed_in_at=database_now(),
        )  # fmt: skip

    def ask(self, run: Run, effect: int = 1) -> RunState:
        """The operator asks the service again; what it answers is stored."""
        asked = load(run.pk).effects[effect]
        tool = agents.registered()["refunds", "1"].writing(asked.tool)
        answer, evidence, _ = recovery.ask(asked, tool)
        actions.record_answer(
            person=self.operator, run_id=run.pk, effect=effect, answer=answer, evidence=evidence, submission=uuid4()
        )  # fmt: skip
        return assert_replays(run)

    def conclude(self, run: Run, *, happened: bool, effect: int = 1) -> RunState:
        """The operator records what the latest answer says."""
        asked = load(run.pk).effects[effect].asks[-1].seq
        actions.conclude_effect(
            person=self.operator, run_id=run.pk, effect=effect, happened=happened, asked=asked,
            note="the service shows it", submission=uuid4(),
        )  # fmt: skip
        return assert_replays(run)

    def reaches(self, run: Run, state: State, *, plan: int = 1) -> RunState:
        """Wait until the run is in the state with that plan version; its log equals the rows beside it."""

        def there() -> bool:
            now = load(run.pk)
            return now.state is state and len(now.plans) >= plan

        until(there, what=lambda: _told(run))
        return assert_replays(run)

    def holds(self, order: str) -> None:
        """Wait until the service holds the refund of this order."""
        until(
            lambda: any(held["operation_id"] == operation(order) for held in self.outside.held()),
            what=lambda: str(self.outside.held()),
        )

    def times(self, order: str) -> int:
        """How often the service really refunded the order."""
        counted: int = self.outside.ledger()["operations"].get(operation(order), 0)
        return counted

    def keys(self, order: str) -> set[str]:
        """The keys under which the service refunded the order."""
        with self.outside.client() as client:
            found = client.get("/payments/refunds", params={"operation_id": operation(order)}).json()
        return {refund["key"] for refund in found}


def build(outside: Outside) -> Story:
    """The demo's house around a running service."""
    agent, people = make_house({who.username: "correct horse battery" for who in PEOPLE})
    return Story(agent=agent, people=people, outside=outside)


def operation(order: str) -> str:
    """The operation id of an order's refund."""
    return f"refund:order-{order}"


def _told(run: Run) -> str:
    state = load(run.pk)
    effects = [(x.status.value, len(x.sends), len(x.asks)) for x in state.effects.values()]
    return (
        f"{state.state}, plans {len(state.plans)}, {[(r.code, r.evidence) for r in state.reasons]}, {effects}"
    )


def until(true: Callable[[], bool], *, what: Callable[[], str] = str, seconds: float = PATIENCE) -> None:
    """Poll until it is so. Fails with what is so instead."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what()
        time.sleep(0.05)
