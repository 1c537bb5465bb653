"""An agent whose planner proposes what a test wrote down, and tools that misbehave as told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from approvals.policy import ApprovalRule, Party, RulePolicy
from runs.agents import Agent, Plan, Proposal, Read, Step, View
from runs.tools import Ambiguous, Answer, Call, Executed, Found, Reading
from tests.outside import WORLD, LookUp, Pay, Tell

LOOK = Read(tool="look_up", arguments={"order": "7"})


@dataclass
class Script:
    """What the planner and the tools do next. `proposals` are used up; the last one is repeated."""

    proposals: list[Callable[[View], Any]] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    answer: Callable[[Call], Answer] | None = None
    found: Callable[[Call], Found | Ambiguous] | None = None
    reading: Callable[[], Reading] | None = None
    postcondition: Callable[[Any], str | None] | None = None
    needed: int = 0
    party: Party = Party.CREATOR

    def reset(self) -> None:
        self.__init__()  # type: ignore[misc]


SCRIPT = Script()


def pay(name: str = "pay:7", order: str = "7", amount: str = "50.00", **more: Any) -> Step:
    return Step(name=name, tool="pay", arguments={"order": order, "amount": amount}, **more)


def plan(*steps: Step, **more: Any) -> Callable[[View], Proposal]:
    return lambda view: Plan(steps=steps or (pay(),), **more)


class Scripted:
    """Proposes the next line of the script."""

    def propose(self, view: View) -> Proposal:
        SCRIPT.views.append(view)
        proposals = SCRIPT.proposals or [plan()]
        line = proposals.pop(0) if len(proposals) > 1 else proposals[0]
        return line(view)  # type: ignore[no-any-return]


class OddPay(Pay):
    """Pays, unless the script answers in its place."""

    def call(self, call: Call) -> Answer:
        if SCRIPT.answer is None:
            return super().call(call)
        WORLD.calls.append(call.operation_id)
        WORLD.executed.append((call.operation_id, call.key, dict(call.arguments)))
        return SCRIPT.answer(call)

    def query(self, call: Call) -> Found | Ambiguous:
        if SCRIPT.found is None:
            return super().query(call)
        WORLD.queries.append(call.operation_id)
        return SCRIPT.found(call)

    def postcondition(self, arguments: Mapping[str, Any], evidence: Any) -> str | None:
        return SCRIPT.postcondition(evidence) if SCRIPT.postcondition else None


class OddLookUp(LookUp):
    """Reads, unless the script reads in its place."""

    def read(self, arguments: Mapping[str, Any], *, timeout: timedelta) -> Reading:
        return SCRIPT.reading() if SCRIPT.reading else super().read(arguments, timeout=timeout)


def executed(evidence: Any, reference: str = "ref-1", account: str = "acct") -> Callable[[Call], Answer]:
    return lambda call: Executed(reference=reference, account=account, evidence=evidence)


class Moody:
    """Asks for as many people as the script says."""

    @property
    def version(self) -> str:
        return "1"

    def evaluate(self, steps: Any) -> Any:
        rules = (
            ApprovalRule(
                name="script",
                applies=lambda step: True,
                needed=SCRIPT.needed,
                not_by=frozenset({SCRIPT.party}),
            ),
        )
        return RulePolicy(version="1", rules=rules if SCRIPT.needed else ()).evaluate(steps)


AGENT = Agent(
    name="payer", version="1", title="Scripted", planner=Scripted(), tools=(OddLookUp(), OddPay(), Tell()),
    policy=Moody(),
)  # fmt: skip
