"""An agent some of whose values not everybody may see, and the outside that it acts on.

Its tools and its planner write the values wherever they can: into titles, promises, claims, refusals and long evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from runs.agents import Assume, Bounds, FromReading, Late, Plan, Promise, Proposal, Read, Step, View
from runs.limits import LARGEST_INLINE
from runs.tools import Ambiguous, Answer, Arguments, Call, Executed, Reading, Refused
from tests.outside import PAYER, WORLD, LookUp, Pay

ACCOUNT = "DE44ZQXW“7”&<KITE>"  #: in an argument and a reading, with what HTML and JSON write otherwise
LATE = "GB29LATEBOUND0042"  #: bound before the send
PROOF = "PROOF-of-the-other-side-9931"  #: in evidence only, beyond what an event holds
INPUT = "caller@hidden.example"  #: in the input of the run
PIN = 77  #: too short to be looked for
SECRETS = (ACCOUNT, LATE, PROOF, INPUT)


class LookUpAccount(LookUp):
    sensitive = frozenset({"account.number"})

    def read(self, arguments: Mapping[str, Any], *, timeout: timedelta) -> Reading:
        order = arguments["order"]
        number = LATE if order == "late" else ACCOUNT
        value = {"order": order, "account": {"number": number, "bank": "Acme Bank"}}
        return Reading(value=value, resource=f"order:{order}", version="v1")


class WireArguments(Arguments):
    order: str
    amount: str
    to: str
    pin: int = PIN


class Wire(Pay):
    name = "wire"
    schema = WireArguments
    sensitive = frozenset({"to", "pin", "proofs.proof"})

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"wire:{arguments['order']}"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        return f"wire {arguments['amount']} EUR to {arguments['to']}"

    def confirm_phrase(self, arguments: Mapping[str, Any]) -> str:
        return f"{arguments['amount']} {arguments['order']}"

    def call(self, call: Call) -> Answer:
        to = call.arguments["to"]
        if WORLD.answers and WORLD.answers.pop(0) == "lost":
            return Ambiguous(detail=f"no answer for {to}")
        if call.arguments["order"] == "3":
            return Refused(detail=f"the account {to} is closed", evidence={"to": to, "why": f"no {to!r}"})
        WORLD.execute(call.operation_id, call.key, call.arguments, once=True)
        long = {"amount": call.arguments["amount"], "to": to, "padding": "x" * LARGEST_INLINE}
        return Executed(
            reference=f"ref-{call.operation_id}", account="acct",
            evidence={**long, "proofs": [{"proof": PROOF}, {"proof": "second"}]},
        )  # fmt: skip

    def postcondition(self, arguments: Mapping[str, Any], evidence: Any) -> str | None:
        return None


class WireByAccount(Wire):
    """Its operation id is made of what is sensitive."""

    name = "wire_by_account"

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"wire:{arguments['to']}".replace(" ", "")


class Planner:
    """Reads the account; then wires to it, to one that comes late, and to it again, which is refused."""

    def propose(self, view: View) -> Proposal:
        look = Read(tool="look_up", arguments={"order": "1"})
        seen = view.observed("look_up", {"order": "1"})
        if seen is None:
            return look
        to = seen.value["account"]["number"]
        tool = view.input.get("tool", "wire")
        late = Late(
            source=FromReading(tool="look_up", arguments={"order": "late"}, path="account.number"),
            bounds=Bounds(type="text", longest=40, example="none"),
        )
        done = {x.step for x in view.standing}
        wires = {"1": to, "2": late, "3": to}
        steps = tuple(
            Step(name=f"wire:{order}", tool=tool, arguments={"order": order, "amount": "250.00", "to": whom})
            for order, whom in wires.items()
            if f"wire:{order}" not in done
        )
        promise = Promise(text=f"Tell the holder of {to}", after="wire:1", by="wire:3")
        return Plan(
            steps=steps,
            promises=(promise,) if len(steps) == 3 else (),
            assumptions=(Assume(text=f"{to} is theirs", rests_on=(look,)),),
            claim=f"{view.input['caller']} asked for {to}.",
        )


AGENT = replace(
    PAYER,
    planner=Planner(),
    tools=(LookUpAccount(), Wire(), WireByAccount()),
    sensitive=frozenset({"caller"}),
)
