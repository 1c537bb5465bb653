"""An agent whose runs a dying fleet leaves behind in every state. Each run's input says in which: its `fate`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from approvals.policy import ApprovalRule, RulePolicy
from runs.agents import Agent, Plan, Proposal, Step, View
from runs.tools import Answer, Arguments, Call, Executed, Found, Match, WritingTool

#: How many runs in a hundred share each fate.
FATES: Mapping[str, int] = {
    "asking": 25,  # the planner was being asked
    "planned": 15,  # the plan was stored and checked, nothing sent
    "found": 25,  # an effect was in flight and happened
    "lost": 10,  # an effect was in flight and did not happen
    "blind": 10,  # an effect was in flight that nobody can be asked about
    "waiting": 15,  # a person is asked; no worker holds it
}


class Killed(BaseException):
    """The fleet stops here and never goes on."""


class Switch:
    """Whether this process is the fleet that will be killed."""

    dying = False
    fate = ""  #: of the run that it is moving

    def stop(self, *fates: str) -> None:
        """Stand still for ever, where the run shares one of these fates."""
        if self.dying and self.fate in fates:
            raise Killed


SWITCH = Switch()


class ItemArguments(Arguments):
    item: str
    fate: str


class Asked(WritingTool):
    """An effect that the outside can be asked about. Its own records are computed from the operation id."""

    name = "asked"
    system = "nowhere"
    schema = ItemArguments
    reversible = True
    queryable = True
    idempotency_retention: ClassVar[timedelta | None] = timedelta(days=1)

    @property
    def account(self) -> str:
        """Asked for just before a send is stored."""
        SWITCH.stop("planned")
        return "nobody"

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"{self.name}:{arguments['item']}"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        return f"nothing for {arguments['item']}"

    def call(self, call: Call) -> Answer:
        SWITCH.stop("found", "lost", "blind")
        return Executed(reference=call.operation_id, account=self.account, evidence={"answer": "done"})

    def query(self, call: Call) -> Found:
        found = Match(
            reference=call.operation_id, operation_id=call.operation_id, key=call.key, account=self.account,
            final=True, arguments=call.arguments,
        )  # fmt: skip
        happened = call.arguments["fate"] == "found"
        return Found(matches=(found,) if happened else (), account=self.account, evidence={"answer": "done"})

    def postcondition(self, arguments: Mapping[str, Any], evidence: Any) -> str | None:
        return None


class Blind(Asked):
    """An effect that can be neither asked about nor sent again."""

    name = "blind"
    queryable = False
    idempotency_retention: ClassVar[timedelta | None] = None


class Orphaned:
    """Two effects, the first of the kind that the run's fate needs."""

    def propose(self, view: View) -> Proposal:
        fate = view.input["fate"]
        SWITCH.stop("asking")
        first = "blind" if fate == "blind" else "asked"
        steps = [
            Step(name=f"{view.run}-{n}", tool=tool, arguments={"item": f"{view.run}-{n}", "fate": fate})
            for n, tool in enumerate((first, "asked"))
        ]
        return Plan(steps=tuple(steps))


ORPHANED = Agent(
    name="orphaned",
    version="1",
    title="Orphaned",
    planner=Orphaned(),
    tools=(Asked(), Blind()),
    policy=RulePolicy(
        version="1",
        rules=(ApprovalRule(name="waiting", applies=lambda step: step.arguments["fate"] == "waiting"),),
    ),
)
