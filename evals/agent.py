"""An agent whose every step is the same effect on a system that does nothing and answers at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, ClassVar

from approvals.policy import ApprovalRule, RulePolicy
from runs.agents import Agent, Plan, Proposal, Step, View
from runs.tools import Answer, Arguments, Call, Executed, Found, WritingTool

ARGUMENTS_BYTES = 600  #: of the canonical text
RESULT_BYTES = 300
_SHELL = len('{"item":"","note":""}')
_EVIDENCE = {"answer": "done", "detail": "r" * (RESULT_BYTES - len('{"answer":"done","detail":""}'))}


class ItemArguments(Arguments):
    item: str
    note: str


class Nothing(WritingTool):
    """Returns at once. `between` is called inside each call: what it takes is no part of a durable step."""

    name = "nothing"
    system = "nowhere"
    schema = ItemArguments
    reversible = True
    queryable = True
    idempotency_retention: ClassVar[timedelta | None] = timedelta(days=1)

    def __init__(self) -> None:
        self.between: Callable[[], None] = lambda: None

    @property
    def account(self) -> str:
        return "nobody"

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"nothing:{arguments['item']}"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        return f"nothing for {arguments['item']}"

    def call(self, call: Call) -> Answer:
        self.between()
        return Executed(reference=call.operation_id, account=self.account, evidence=_EVIDENCE)

    def query(self, call: Call) -> Found:
        return Found(matches=(), account=self.account, evidence=[])

    def postcondition(self, arguments: Mapping[str, Any], evidence: Any) -> str | None:
        return None if evidence.get("answer") == "done" else "it was not done"


class Steady:
    """Proposes as many steps as the input says."""

    def propose(self, view: View) -> Proposal:
        items = [f"{view.run}-{number}" for number in range(int(view.input["steps"]))]
        return Plan(steps=tuple(Step(name=i, tool="nothing", arguments=item_arguments(i)) for i in items))


def item_arguments(item: str) -> dict[str, str]:
    """Arguments of which the canonical text has its length."""
    return {"item": item, "note": "a" * (ARGUMENTS_BYTES - _SHELL - len(item))}


NOTHING = Nothing()
STEADY = Agent(
    name="steady",
    version="1",
    title="Steady",
    planner=Steady(),
    tools=(NOTHING,),
    # Each send looks for this approval, and whether its approver still may.
    policy=RulePolicy(version="1", rules=(ApprovalRule(name="every plan", applies=lambda step: True),)),
)
