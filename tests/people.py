"""Named people and runs whose lives are made by real actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

from accounts.models import Membership, Tenant, User
from accounts.rights import Right, grant_right
from approvals.models import Request, Verdict
from approvals.outcomes import Outcome
from runs import actions, engine
from runs.clock import database_now
from runs.ledger import load
from runs.machine.decide import goal_impact
from runs.machine.state import RunState
from runs.machine.transitions import Decision
from runs.models import Agent, Run
from runs.rereduction import differences

OPERATOR = (
    Right.VIEW_RUNS, Right.START_RUNS, Right.OPERATE_RUNS, Right.RECONCILE_EFFECTS, Right.CANCEL_RUNS,
    Right.RESTART_RUNS, Right.SEE_VALUES, Right.REVISE_GOALS,
)  # fmt: skip
APPROVER = (Right.VIEW_RUNS, Right.APPROVE_PLANS, Right.SEE_VALUES)
PASSWORD = "correct horse"


@dataclass
class House:
    """A tenant with an operator, two approvers, a viewer; and a stranger who belongs to another tenant."""

    tenant: Tenant
    agent: Agent
    operator: User
    approver: User
    second: User
    viewer: User
    stranger: User

    def start(
        self, order: str = "1042", amount: str = "50.00", budget: Decimal | None = None, **more: object
    ) -> Run:
        """A run that was just started."""
        return actions.start_run(
            agent=self.agent, version="1", goal=f"Pay order {order}",
            input={"order": order, "amount": amount, **more}, start_key=f"order-{order}-{uuid4()}",
            creator=self.operator, principal=self.operator, budget=budget,
        )  # fmt: skip

    def scripted(
        self,
        *plans: Sequence[Mapping[str, object]],
        budget: Decimal | None = None,
        deadline: datetime | None = None,
        **more: object,
    ) -> Run:
        """A run whose plans its input writes out, moved as far as it goes (tests.outside.scripted)."""
        run = actions.start_run(
            agent=self.agent, version="1", goal="Do as written", input={"plans": list(plans), **more},
            start_key=str(uuid4()), creator=self.operator, principal=self.operator, budget=budget, deadline=deadline,
        )  # fmt: skip
        advance(run)
        return run

    def answer(self, run: Run, name: str, payload: str = "true") -> RunState:
        """The operator gives the run an answer."""
        actions.signal_run(
            person=self.operator, run_id=run.pk, name=name, payload=payload, submission=uuid4()
        )
        return assert_replays(run)

    def waiting(self, order: str = "2000", amount: str = "250.00") -> Run:
        """A run whose plan waits for approval."""
        run = self.start(order, amount)
        advance(run)
        return run

    def approved(self, order: str = "2000", amount: str = "250.00") -> Run:
        """A run whose plan the approver approved; nothing was executed yet."""
        run = self.waiting(order, amount)
        self.decide(run, self.approver)
        return run

    def cancel(self, run: Run, *, undo: bool = False) -> RunState:
        """The operator ends the run; with `undo` what it did is to be undone."""
        actions.cancel_run(
            person=self.operator, run_id=run.pk, note="not needed", undo=undo, submission=uuid4()
        )
        return assert_replays(run)

    def revise(
        self,
        run: Run,
        text: str = "Pay half of it",
        *,
        by: User | None = None,
        reason: str = "it was too much",
    ) -> RunState:
        """The operator, or another person, gives the run another goal."""
        state = load(run.pk)
        actions.revise_goal(
            person=by or self.operator, run_id=run.pk, text=text, reason=reason, expected=state.goal.version,
            impact=goal_impact(state).digest, submission=uuid4(),
        )  # fmt: skip
        return assert_replays(run)

    def choose(self, run: Run, decision: Decision, note: str = "go on") -> RunState:
        """The operator decides how a stopped run goes on."""
        actions.decide_run(
            person=self.operator, run_id=run.pk, decision=decision, note=note, submission=uuid4()
        )
        return assert_replays(run)

    def lend(self, run: Run, budget: str | None = None, **more: Any) -> RunState:
        """The operator lends to a stopped run anew."""
        actions.lend_anew(
            person=self.operator, run_id=run.pk, scopes=more.pop("scopes", ("pay", "tell", "runs")),
            note="lent again", budget=None if budget is None else Decimal(budget), submission=uuid4(), **more,
        )  # fmt: skip
        return assert_replays(run)

    def decide(
        self, run: Run, person: User, verdict: Verdict = Verdict.APPROVE, reason: str = "as was agreed"
    ) -> Outcome:
        """A person decides on the plan version that the run shows now."""
        request = Request.objects.filter(subject__startswith=run.pk).latest("opened_at")
        outcome = actions.decide_plan(
            person=person, run_id=run.pk, version=int(request.subject.split(":")[1]), verdict=verdict, reason=reason,
            digest=request.digest, conditions_digest=request.conditions_digest, submission=uuid4(),
            signed_in_at=database_now(),
        )  # fmt: skip
        assert_replays(run)
        return outcome


def build_house() -> House:
    """The people of every test."""
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    other = Tenant.objects.create(slug="other", name="Other")
    agent = Agent.objects.create(tenant=tenant, name="payer", title="Payer")
    names = {"operator": OPERATOR, "approver": APPROVER, "second": APPROVER, "viewer": (Right.VIEW_RUNS,)}
    people = {name: _person(name, tenant, agent, rights) for name, rights in names.items()}
    Agent.objects.create(tenant=other, name="payer", title="Payer")
    stranger = _person("stranger", other, other, tuple(Right))
    return House(tenant=tenant, agent=agent, stranger=stranger, **people)


def find_house() -> House:
    """The people of `build_house`, in the database in use."""
    names = ("operator", "approver", "second", "viewer", "stranger")
    people = {name: User.objects.get(username=name) for name in names}
    tenant = Tenant.objects.get(slug="acme")
    return House(tenant=tenant, agent=Agent.objects.get(tenant=tenant, name="payer"), **people)


def _person(name: str, tenant: Tenant, on: Agent | Tenant, rights: tuple[Right, ...]) -> User:
    person = User.objects.create_user(username=name, password=PASSWORD, display_name=name.capitalize())
    Membership.objects.create(user=person, tenant=tenant)
    for right in rights:
        grant_right(to=person, right=right, obj=on, actor=None, now=database_now())
    return person


def advance(run: Run) -> RunState:
    """A worker moves the run as far as it goes; the log re-reduced equals the projection."""
    engine.advance(run.pk)
    return assert_replays(run)


def assert_replays(run: Run) -> RunState:
    """The replay check: the rows are what the log amounts to, and the chain is whole."""
    assert differences(run.pk) == []
    return load(run.pk)
