"""An outside world in memory, with state, and an agent that acts on it: the one border at which tests use a fake.

`World` holds what was really executed, per operation id, and what the next calls shall do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar

from approvals.policy import ApprovalRule, RulePolicy
from runs.agents import (
    Agent,
    Bounds,
    Children,
    ChildRun,
    Constraint,
    Decline,
    FromChild,
    FromReading,
    FromReceipt,
    FromSignal,
    Late,
    Plan,
    Promise,
    Proposal,
    Read,
    Signal,
    Step,
    Timer,
    View,
)
from runs.tools import (
    Ambiguous,
    Answer,
    Arguments,
    Call,
    Executed,
    Found,
    Match,
    Reading,
    ReadingTool,
    Refused,
    Unreadable,
    WritingTool,
)


@dataclass
class World:
    """What is outside. `before_call` and `after_call` run around each execution: a test may raise or kill there."""

    versions: dict[str, str] = field(default_factory=dict)
    executed: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    outage: str = ""
    answers: list[str] = field(default_factory=list)  #: for the next calls: lost, refused, silent, late
    on_the_way: list[Callable[[], None]] = field(default_factory=list)  #: calls that arrive later
    unreadable: str = ""
    amounts: dict[str, str] = field(default_factory=dict)  #: what the planner makes of an order's amount
    hook: Callable[[str], None] | None = None
    visible: bool = True

    def reset(self) -> None:
        """A new world."""
        self.__init__()  # type: ignore[misc]

    def execute(self, operation_id: str, key: str, arguments: Mapping[str, Any], *, once: bool) -> None:
        """Do it, unless the key is honoured and was seen before."""
        if not (once and self.knows(key)):
            self.executed.append((operation_id, key, dict(arguments)))

    def knows(self, key: str) -> bool:
        """Whether something was executed under this key."""
        return any(known == key for _, known, _ in self.executed)

    def times(self, operation_id: str) -> int:
        """How often this was really executed."""
        return sum(done == operation_id for done, _, _ in self.executed)


WORLD = World()


class OrderArguments(Arguments):
    order: str


class LookUp(ReadingTool):
    name = "look_up"
    system = "shop"
    schema = OrderArguments
    half_life = timedelta(minutes=10)

    def read(self, arguments: Mapping[str, Any], *, timeout: timedelta) -> Reading:
        if WORLD.unreadable:
            raise Unreadable(WORLD.unreadable)
        order = arguments["order"]
        version = WORLD.versions.get(order, "v1")
        return Reading(value={"order": order, "version": version}, resource=f"order:{order}", version=version)


class PayArguments(Arguments):
    order: str
    amount: str


class Pay(WritingTool):
    name = "pay"
    system = "bank"
    schema: ClassVar[type[Arguments]] = PayArguments
    reversible = False
    queryable = True
    idempotency_retention: ClassVar[timedelta | None] = timedelta(hours=1)

    @property
    def account(self) -> str:
        return "acct"

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"pay:{arguments['order']}"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        return f"pay {arguments['amount']} EUR for order {arguments['order']}"

    def confirm_phrase(self, arguments: Mapping[str, Any]) -> str:
        return f"{arguments['amount']} {arguments['order']}"

    def cost(self, arguments: Mapping[str, Any]) -> Decimal | None:
        return Decimal(arguments["amount"])

    def call(self, call: Call) -> Answer:
        WORLD.calls.append(call.operation_id)
        if WORLD.hook:
            WORLD.hook("before")
        what = WORLD.answers.pop(0) if WORLD.answers else ""
        if what == "refused":
            return Refused(detail="the bank says no", evidence={"error": "no"})
        once = self.idempotency_retention is not None
        execute = partial(WORLD.execute, call.operation_id, call.key, call.arguments, once=once)
        if what == "late":
            WORLD.on_the_way.append(execute)
        if what in ("silent", "late"):
            return Ambiguous(detail="timed out")
        execute()
        if WORLD.hook:
            WORLD.hook("after")
        if what == "lost":
            return Ambiguous(detail="the connection ended")
        return Executed(reference=f"ref-{call.operation_id}", account="acct", evidence=dict(call.arguments))

    def query(self, call: Call) -> Found | Ambiguous:
        WORLD.queries.append(call.operation_id)
        if WORLD.outage:
            return Ambiguous(detail=WORLD.outage)
        shown = [x for x in WORLD.executed if x[0] == call.operation_id and WORLD.visible]
        matches = tuple(
            Match(
                reference=f"ref-{i}", operation_id=i, key=key, account="acct", final=True, arguments=arguments
            )
            for i, key, arguments in shown
        )
        return Found(matches=matches, account="acct", evidence=[dict(a) for _, _, a in shown])

    def outcome(self, evidence: Any) -> Any:
        """A query shows the records, a call the one."""
        return evidence[0] if isinstance(evidence, list) else evidence

    def postcondition(self, arguments: Mapping[str, Any], evidence: Any) -> str | None:
        shown = evidence[0] if isinstance(evidence, list) else evidence
        return None if shown["amount"] == arguments["amount"] else "another amount was paid"


class Tell(Pay):
    """A second effect, reversible, that discharges the promise the first one opened."""

    name = "tell"
    system = "mail"
    reversible = True

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"tell:{arguments['order']}"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        return f"tell the supplier about order {arguments['order']}"


class Give(Pay):
    """A payment that the bank takes back when asked to."""

    name = "give"
    reversible = True
    compensation = "take_back"

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"give:{arguments['order']}"

    def undo_arguments(self, arguments: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
        if WORLD.unreadable:
            raise RuntimeError(WORLD.unreadable)
        return {"order": arguments["order"], "amount": arguments["amount"]}


class TakeBack(Pay):
    """Undoes `give`."""

    name = "take_back"
    reversible = True

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"take_back:{arguments['order']}"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        return f"take back {arguments['amount']} EUR for order {arguments['order']}"

    def cost(self, arguments: Mapping[str, Any]) -> Decimal | None:
        return None


class GiveDear(Give):
    """Undoing it takes an approval: the policy asks for it where it is dear."""

    name = "give_dear"
    compensation = "take_back_dear"

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"give_dear:{arguments['order']}"


class TakeBackDear(TakeBack):
    name = "take_back_dear"
    reversible = False

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"take_back_dear:{arguments['order']}"

    def cost(self, arguments: Mapping[str, Any]) -> Decimal | None:
        return Decimal(arguments["amount"])


class PayOnce(Pay):
    """The bank honours no keys, but can be asked."""

    name = "pay_once"
    idempotency_retention = None


class PayByKey(Pay):
    """The bank cannot be asked, but honours keys."""

    name = "pay_by_key"
    queryable = False


class LetterArguments(PayArguments):
    text: str


class Letter(Pay):
    """Pays, with a letter of any length."""

    name = "letter"
    schema = LetterArguments


class PayBlind(Pay):
    """Neither."""

    name = "pay_blind"
    queryable = False
    idempotency_retention = None


class PayAnyone(Pay):
    """Its operation ids repeat from one lineage to another."""

    name = "pay_anyone"
    repeatable_ids = True

    def query(self, call: Call) -> Found | Ambiguous:
        """All records under the id; the evidence is of its own."""
        found = super().query(call)
        if isinstance(found, Ambiguous):
            return found
        own = [dict(m.arguments) for m in found.matches if m.key == call.key]
        return replace(found, evidence=own)


class Payer:
    """Reads the order, then pays and tells. Declines where its input says so."""

    def propose(self, view: View) -> Proposal:
        if view.input.get("decline"):
            return Decline(reason=str(view.input["decline"]))
        if "plans" in view.input:
            return scripted(view)
        order = str(view.input["order"])
        amount = WORLD.amounts.get(order, str(view.input["amount"]))
        look = Read(tool="look_up", arguments={"order": order})
        if view.observed("look_up", {"order": order}) is None:
            return look
        arguments = {"order": order, "amount": amount}
        return Plan(
            steps=(
                Step(
                    name=f"pay:{order}",
                    tool=str(view.input.get("tool", "pay")),
                    arguments=arguments,
                    rests_on=(look,),
                ),
                Step(name=f"tell:{order}", tool="tell", arguments=arguments),
            ),
            promises=(
                Promise(text=f"tell the supplier of {order}", after=f"pay:{order}", by=f"tell:{order}"),
            ),
            claim="This looks right.",
        )


def scripted(view: View) -> Proposal:
    """The plan that the input writes out: of several, the one whose turn it is."""
    plans = view.input["plans"]
    number = min(view.next_version, len(plans)) - 1
    steps = tuple(_scripted_step(spec) for spec in plans[number])
    return Plan(steps=steps, more=number + 1 < len(plans) and bool(view.input.get("more")))


def _scripted_step(spec: Mapping[str, Any]) -> Step | Timer | Signal | Children:
    """{"timer": seconds} or {"signal": name, "within": seconds} or {"children": {name: input}} or an effect."""
    if "timer" in spec:
        return Timer(name=spec.get("name", "rest"), length=timedelta(seconds=spec["timer"]))
    if "signal" in spec:
        within = timedelta(seconds=spec["within"]) if "within" in spec else None
        return Signal(name=spec.get("name", f"hear:{spec['signal']}"), signal=spec["signal"], within=within)
    if "children" in spec:
        runs = tuple(
            ChildRun(
                name=name, agent="payer", goal=f"Pay {name}", input=given,
                budget=Decimal(spec["budget"]) if "budget" in spec else None,
            )
            for name, given in spec["children"].items()
        )  # fmt: skip
        return Children(name=spec.get("name", "delegate"), runs=runs)
    tool, order = spec["tool"], spec["order"]
    arguments = {
        "order": order,
        "amount": _late(spec["late"]) if "late" in spec else spec.get("amount", "10.00"),
    }
    letter = {"text": spec["text"]} if "text" in spec else {}
    return Step(name=spec.get("name", f"{tool}:{order}"), tool=tool, arguments=arguments | letter)


SOURCES = {"receipt": FromReceipt, "signal": FromSignal, "child": FromChild, "reading": FromReading}


def _late(spec: Mapping[str, Any]) -> Late:
    """An amount that comes late: {"from": "receipt", "step": …, "path": …, "least": "1.00", "most": "50.00"}."""
    bounds = {name: Decimal(spec[name]) for name in ("least", "most") if name in spec}
    given = {k: v for k, v in spec.items() if k not in ("from", "bounds", "least", "most")}
    return Late(source=SOURCES[spec["from"]](**given), bounds=Bounds(**{**bounds, **spec.get("bounds", {})}))


POLICY = RulePolicy(
    version="1",
    rules=(
        ApprovalRule(
            name="from 100 EUR", applies=lambda step: (step.cost or Decimal()) >= 100 and not step.reversible
        ),
    ),
)
PAYER = Agent(
    name="payer",
    version="1",
    title="Payer",
    planner=Payer(),
    tools=(
        LookUp(),
        Pay(),
        PayOnce(),
        PayByKey(),
        PayBlind(),
        PayAnyone(),
        Letter(),
        Tell(),
        Give(),
        TakeBack(),
        GiveDear(),
        TakeBackDear(),
    ),
    policy=POLICY,
    constraints=(
        Constraint(
            text="Pay only open orders.", source_kind="configuration", source_ref="payer", source_version="1"
        ),
    ),
)
