"""An agent whose one step is an effect by a tool of the kind that its input names; the outside is `MATRIX_URL`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

import httpx

from approvals.policy import RulePolicy
from runs.agents import (
    Agent,
    Bounds,
    Children,
    ChildRun,
    FromSignal,
    Late,
    Plan,
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
    WritingTool,
)

HOUR = timedelta(hours=1)
#: Without TLS: reading the certificates of the world takes longer than all else that a call does.
PLAIN: Any = {"verify": False, "trust_env": False}


class Thing(Arguments):
    thing: str


class Noted(Thing):
    note: str


class Look(ReadingTool):
    """Something to read first, so that the run has an observation."""

    name = "look"
    system = "matrix"
    schema = Thing
    half_life = timedelta(minutes=10)

    def read(self, arguments: Mapping[str, Any], *, timeout: timedelta) -> Reading:
        return Reading(
            value={"thing": arguments["thing"]}, resource=f"thing:{arguments['thing']}", version="1"
        )


class Do(WritingTool):
    """Both: it can be asked about, and honours keys."""

    name = "both"
    system = "matrix"
    schema: ClassVar[type[Arguments]] = Thing
    reversible = True
    queryable = True
    idempotency_retention: ClassVar[timedelta | None] = HOUR
    #: A slow machine is no reason to stop for a person.
    patience: ClassVar[timedelta | None] = timedelta(minutes=2)

    @property
    def account(self) -> str:
        return "matrix"

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"do:{arguments['thing']}"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        return f"do {arguments['thing']}"

    def call(self, call: Call) -> Answer:
        key = call.key if self.idempotency_retention else ""
        body = {"operation": call.operation_id, "key": key, "thing": call.arguments["thing"]}
        try:
            answer = httpx.post(
                os.environ["MATRIX_URL"], json=body, timeout=call.timeout.total_seconds(), **PLAIN
            )
        except httpx.HTTPError as error:
            return Ambiguous(detail=type(error).__name__)
        return Executed(reference=answer.json()["reference"], account="matrix", evidence=answer.json())

    def query(self, call: Call) -> Found | Ambiguous:
        try:
            answer = httpx.get(
                os.environ["MATRIX_URL"], params={"operation": call.operation_id}, timeout=1, **PLAIN
            )
        except httpx.HTTPError as error:
            return Ambiguous(detail=type(error).__name__)
        matches = tuple(
            Match(
                reference=f"ref-{x['operation']}", operation_id=x["operation"], key=x["key"] or None,
                account="matrix", final=True, arguments={"thing": x["thing"]},
            )
            for x in answer.json()
        )  # fmt: skip
        return Found(matches=matches, account="matrix", evidence=answer.json())

    def postcondition(self, arguments: Mapping[str, Any], evidence: Any) -> str | None:
        return None


class Query(Do):
    """It can be asked about, and honours no keys."""

    name = "query"
    idempotency_retention = None


class Key(Do):
    """It honours keys, and cannot be asked about."""

    name = "key"
    queryable = False


class Blind(Do):
    """Neither."""

    name = "blind"
    queryable = False
    idempotency_retention = None


class Note(Do):
    """As the first, with something to note."""

    name = "note"
    schema = Noted


class Make(Do):
    """What can be undone again."""

    name = "make"
    compensation = "unmake"

    def undo_arguments(self, arguments: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
        return {"thing": arguments["thing"]}


class Unmake(Do):
    name = "unmake"

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        return f"undo:{arguments['thing']}"


def whole(thing: str) -> Plan:
    """All that a plan can wait for, between effects of its own and of a run that it starts."""
    child = ChildRun(name="part", agent="matrix", goal=f"A part of {thing}", input={"part": f"{thing}-part"})
    return Plan(
        steps=(
            make(thing),
            Timer(name="rest", length=timedelta(seconds=0.2)),
            Signal(name="hear", signal="go"),
            Children(name="delegate", runs=(child,)),
            Signal(name="hold", signal="never"),
        )
    )


def make(thing: str) -> Step:
    return Step(name=f"make:{thing}", tool="make", arguments={"thing": thing})


def late(thing: str) -> Plan:
    """An effect whose note is what a person answers."""
    note = Late(source=FromSignal(step="hear"), bounds=Bounds(type="text", one_of=("red", "blue")))
    step = Step(name=f"do:{thing}", tool="note", arguments={"thing": thing, "note": note})
    return Plan(steps=(Signal(name="hear", signal="go"), step))


class Planner:
    """Looks, then does; where its input says so, all that a plan can hold, or a part of that."""

    def propose(self, view: View) -> Proposal:
        if "whole" in view.input:
            return whole(str(view.input["whole"]))
        if "part" in view.input:
            return Plan(steps=(make(str(view.input["part"])),))
        if "late" in view.input:
            return late(str(view.input["late"]))
        arguments = {"thing": str(view.input["thing"])}
        look = Read(tool="look", arguments=arguments)
        if view.observed("look", arguments) is None:
            return look
        step = Step(
            name=f"do:{arguments['thing']}",
            tool=str(view.input["kind"]),
            arguments=arguments,
            rests_on=(look,),
        )
        return Plan(steps=(step,))


KINDS = ("both", "query", "key", "blind")
AGENT = Agent(
    name="matrix",
    version="1",
    title="Matrix",
    planner=Planner(),
    tools=(Look(), Do(), Query(), Key(), Blind(), Note(), Make(), Unmake()),
    policy=RulePolicy(version="1", rules=()),
)
