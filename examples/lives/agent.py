"""An agent whose runs each stop for one reason: a rehearsal for operators. The outside answers by arguments alone.

Nothing is real here and nothing is kept between calls, so any worker can serve it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from django.conf import settings
from django.utils.translation import gettext as _

from approvals.policy import ApprovalRule, Party, RulePolicy
from runs.agents import (
    Agent,
    Ask,
    Assume,
    Bounds,
    Children,
    ChildRun,
    Configuration,
    Constraint,
    Decline,
    FromReceipt,
    Infer,
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

ACCOUNT = "acct_rehearsal"
#: What an offer may be taken for current for.
OFFER_STANDS = timedelta(seconds=3)


class Mood(StrEnum):
    """How the outside takes an order."""

    FINE = "fine"
    CAREFUL = "careful"  #: fine, and the policy wants a person's approval
    REFUSES = "refuses"
    CONTRADICTS = "contradicts"  #: loses its answer, and its record shows another amount
    FALLS_SHORT = "falls_short"  #: does less than was ordered
    RESTLESS = "restless"  #: the order changes whenever it is read
    MOVES = "moves"  #: careful, and the order is another one from the moment `until` on
    PAIRED = "paired"  #: careful, and two people have to approve
    BRIEF = "brief"  #: careful, and there is little time to approve
    STICKS = "sticks"  #: fine, and cannot be taken back although it should be
    KEEPS = "keeps"  #: fine; an offer that may be taken for current for moments only, and stays as it is
    RISES = "rises"  #: the same, and it is dearer from the moment `until` on


class OrderArguments(Arguments):
    """Which order, how the outside takes it, and until when it can be read ("" for ever)."""

    order: str
    mood: str
    until: str


class Look(ReadingTool):
    """Reads an order."""

    name = "look"
    system = "rehearsal"
    schema = OrderArguments
    half_life = timedelta(minutes=10)

    def read(self, arguments: Mapping[str, Any], *, timeout: timedelta) -> Reading:
        """The order; at another version each time where it is restless."""
        until = arguments["until"]
        over = bool(until) and datetime.now(UTC) > datetime.fromisoformat(until)
        if over and arguments["mood"] not in (Mood.MOVES, Mood.RISES):
            raise Unreadable(_("The orders cannot be read any more."))
        version = f"v{time.time_ns()}" if arguments["mood"] == Mood.RESTLESS else "v2" if over else "v1"
        order = arguments["order"]
        if arguments["mood"] in (Mood.KEEPS, Mood.RISES):
            total = "62.50" if over else "50.00"
            return Reading(value={"order": order, "total": total}, resource=f"offer:{order}", version=version)
        return Reading(value={"order": order, "version": version}, resource=f"order:{order}", version=version)


class PayArguments(Arguments):
    """How much, for which order, and how the outside takes it."""

    order: str
    amount: str
    mood: str


class Pay(WritingTool):
    """Pays, or does what its mood says."""

    name = "pay"
    system = "rehearsal"
    schema = PayArguments
    reversible = False
    queryable: ClassVar[bool] = True
    idempotency_retention: ClassVar[timedelta | None] = timedelta(days=1)

    @property
    def account(self) -> str:
        """The one account there is."""
        return ACCOUNT

    def operation_id(self, arguments: Mapping[str, Any]) -> str:
        """One payment for each order."""
        return f"{self.name}:{arguments['order']}"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        """Amount and order."""
        return _("Pay %(amount)s EUR for order %(order)s") % arguments

    def confirm_phrase(self, arguments: Mapping[str, Any]) -> str:
        """Amount and order."""
        return f"{arguments['amount']} {arguments['order']}"

    def cost(self, arguments: Mapping[str, Any]) -> Decimal:
        """The amount."""
        return Decimal(arguments["amount"])

    def call(self, call: Call) -> Answer:
        """What the mood says."""
        match call.arguments["mood"]:
            case Mood.REFUSES:
                return Refused(detail=_("The account is closed."), evidence={"error": "account_closed"})
            case Mood.CONTRADICTS:
                return Ambiguous(detail=_("The connection ended before an answer came."))
        return Executed(reference=_reference(call), account=ACCOUNT, evidence=_record(call))

    def query(self, call: Call) -> Found | Ambiguous:
        """The outside has always done it, after its own fashion."""
        shown = _record(call)
        match = Match(
            reference=_reference(call), operation_id=call.operation_id, key=call.key, account=ACCOUNT, final=True,
            arguments=shown,
        )  # fmt: skip
        return Found(matches=(match,), account=ACCOUNT, evidence=[shown])

    def postcondition(self, arguments: Mapping[str, Any], evidence: Any) -> str | None:
        """The whole amount."""
        shown = evidence[0] if isinstance(evidence, list) else evidence
        if shown["amount"] == arguments["amount"]:
            return None
        facts = {"ordered": arguments["amount"], "paid": shown["amount"]}
        return _("%(ordered)s EUR were ordered and %(paid)s EUR were paid.") % facts


def _reference(call: Call) -> str:
    return f"rehearsed-{call.key[:8]}"


def _record(call: Call) -> dict[str, Any]:
    """What the outside shows of a payment: less than was ordered, in two of the moods."""
    less = call.arguments["mood"] in (Mood.CONTRADICTS, Mood.FALLS_SHORT)
    return {"order": call.arguments["order"], "amount": "1.00" if less else call.arguments["amount"]}


class Tell(Pay):
    """Tells the supplier. Can be taken back."""

    name = "tell"
    reversible = True
    compensation: ClassVar[str | None] = "take_back"

    def describe(self, arguments: Mapping[str, Any]) -> str:
        """Whom, about what."""
        return _("Tell the supplier about order %(order)s") % arguments

    def cost(self, arguments: Mapping[str, Any]) -> Decimal | None:  # type: ignore[override]
        """Nothing."""
        return None

    def undo_arguments(self, arguments: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
        """The same order."""
        return arguments


class TakeBack(Tell):
    """Takes back what the supplier was told, unless it sticks."""

    name = "take_back"
    compensation = None

    def describe(self, arguments: Mapping[str, Any]) -> str:
        """What is taken back."""
        return _("Take back what the supplier was told about order %(order)s") % arguments

    def call(self, call: Call) -> Answer:
        """Done, or refused where it sticks."""
        if call.arguments["mood"] == Mood.STICKS:
            return Refused(detail=_("The supplier has acted on it already."), evidence={"error": "too_late"})
        return super().call(call)


class Post(Pay):
    """Posts a cheque: nobody can be asked whether it arrived, and a second one is a second payment."""

    name = "post"
    queryable = False
    idempotency_retention = None

    def call(self, call: Call) -> Answer:
        """Whatever became of it."""
        return Ambiguous(detail=_("The post office gave no receipt."))


class Rehearsed:
    """Proposes what leads to the reason that the input names; after advice from a person, a plan that works."""

    def propose(self, view: View) -> Proposal:
        """The next step of the rehearsal."""
        wanted = view.input
        if not _told(view) and wanted["proposes"] == "question":
            return Ask(question=_("Two suppliers have this name. Which one is meant?"))
        if not _told(view) and wanted["proposes"] == "nothing":
            return Decline(reason=_("The order is not one that this agent may pay."))
        mood = Mood.FINE.value if _told(view) else str(wanted["mood"])
        look = Read(tool="look", arguments=_order(view) | {"mood": mood, "until": str(wanted["until"])})
        if view.observed("look", look.arguments) is None:
            return look
        if not _told(view) and wanted["proposes"] == "late":
            return _plan_left_open(view)
        if view.voided is None and wanted["proposes"] in ("offer", "assumed"):
            return _plan_on_offer(view, look)
        waits = {} if _told(view) else _waits(view)
        return (
            _plan_that_waits(view, waits[wanted["proposes"]])
            if wanted["proposes"] in waits
            else _plan(view, mood, look)
        )


def _told(view: View) -> bool:
    """Whether a person has said how it can go on."""
    return bool(view.advice or view.proposed_constraints)


def _order(view: View) -> dict[str, str]:
    return {"order": str(view.input["order"])}


def _waits(view: View) -> Mapping[object, Timer | Signal | Children]:
    """What a plan can wait for, by what the input wants proposed."""
    order, within = view.input["order"], float(str(view.input.get("within", 0)))
    child = {**view.input, "order": f"{order}-part", "proposes": "answer", "mood": Mood.FINE.value}
    goal = _("Do a part of order %(order)s") % {"order": order}
    return {
        "time": Timer(name="rest", length=timedelta(days=30)),
        "answer": Signal(
            name="hear:supplier",
            signal="supplier_agrees",
            within=timedelta(seconds=within) if within else None,
        ),
        "runs": Children(
            name="delegate", runs=(ChildRun(name="part", agent="lives", version="1", goal=goal, input=child),)
        ),
    }


def _plan_that_waits(view: View, wait: Timer | Signal | Children) -> Plan:
    """Tells the supplier, waits, then pays."""
    order = view.input["order"]
    arguments = _order(view) | {"amount": str(view.input["amount"]), "mood": Mood.FINE.value}
    tell = Step(name=f"tell:{order}", tool="tell", arguments=arguments | {"mood": str(view.input["mood"])})
    pay = Step(name=f"pay:{order}", tool="pay", arguments=arguments)
    return Plan(steps=(tell, wait, pay), claim=_("The supplier is told before anything is paid."))


def _plan_on_offer(view: View, look: Read) -> Plan:
    """Tells the supplier, rests until the offer is too old, then pays; or only takes for true that the offer stands."""
    order, assumed = view.input["order"], view.input["proposes"] == "assumed"
    arguments = _order(view) | {"amount": str(view.input["amount"]), "mood": Mood.FINE.value}
    stands = Assume(
        text=_("The offer for order %(order)s stands.") % {"order": order}, rests_on=(look,),
        constraints=view.constraints[:1],
    )  # fmt: skip
    return Plan(
        steps=(
            Step(name=f"tell:{order}", tool="tell", arguments=arguments),
            Timer(name="rest", length=timedelta(seconds=float(str(view.input["within"])))),
            Step(name=f"pay:{order}", tool="pay", arguments=arguments, rests_on=() if assumed else (look,)),
        ),
        assumptions=(stands,) if assumed else (),
        claim=_("The offer is paid as it was read."),
    )


def _plan_left_open(view: View) -> Plan:
    """Tells the supplier, and pays what the answer says; up to less than it will say."""
    order = view.input["order"]
    tell = Step(
        name=f"tell:{order}", tool="tell",
        arguments=_order(view) | {"amount": str(view.input["amount"]), "mood": Mood.FINE.value},
    )  # fmt: skip
    billed = Late(
        source=FromReceipt(step=tell.name, path="evidence.amount"),
        bounds=Bounds(least=Decimal("1.00"), most=Decimal("20.00")),
    )
    pay = Step(
        name=f"pay:{order}", tool="pay",
        arguments={**_order(view), "amount": billed, "mood": str(view.input["mood"])},
    )  # fmt: skip
    return Plan(steps=(tell, pay), claim=_("The supplier’s bill is paid as it comes."))


def _plan(view: View, mood: str, look: Read) -> Plan:
    order, tool = view.input["order"], str(view.input["tool"])
    arguments = _order(view) | {"amount": str(view.input["amount"]), "mood": mood}
    pay = Step(name=f"{tool}:{order}", tool=tool, arguments=arguments, rests_on=(look,))
    tell = Step(name=f"tell:{order}", tool="tell", arguments=arguments | {"mood": Mood.FINE.value})
    promised = _("Tell the supplier about order %(order)s.") % {"order": order}
    told_first = not _told(view) and view.input["proposes"] == "promise"
    return Plan(
        steps=(tell, pay) if told_first else (pay, tell),
        promises=(Promise(text=promised, after=pay.name, by=tell.name),),
        infers=_inferred(view, look),
        claim=_("Everything is in order."),
        takes=tuple(asked.number for asked in view.proposed_constraints),
    )


def _inferred(view: View, look: Read) -> tuple[Infer, ...]:
    """What it says that it read in the order, where its input has it read anything."""
    if view.input["proposes"] != "limit":
        return ()
    predicate = "tool != 'pay' || money(arguments.amount) <= money('60.00')"
    return (
        Infer(text=_("The supplier’s contract allows 60.00 EUR at a time."), read=look, predicate=predicate),
    )


LIVES = Agent(    name="lives",
    version="1",
    takes_over=("0",),
    title="Rehearsal of stopped runs",
    planner=Rehearsed(),
    tools=(Look(), Pay(), Post(), Tell(), TakeBack()),
    half_lives={"offer": OFFER_STANDS},
    policy=RulePolicy(
        version="lives/1",
        rules=(
            ApprovalRule(
                name="a careful payment",
                applies=lambda step: step.arguments.get("mood") in (Mood.CAREFUL, Mood.MOVES),
                stands_for=timedelta(minutes=15),
                not_by=frozenset({Party.PRINCIPAL, Party.CREATOR, Party.GOAL_REVISER}),
            ),
            ApprovalRule(
                name="a payment for two people",
                applies=lambda step: step.arguments.get("mood") == Mood.PAIRED,
                needed=2,
                stands_for=timedelta(minutes=15),
                not_by=frozenset({Party.PRINCIPAL, Party.CREATOR}),
            ),
            ApprovalRule(
                name="a payment in a hurry",
                applies=lambda step: step.arguments.get("mood") == Mood.BRIEF,
                stands_for=timedelta(seconds=3),
            ),
        ),
    ),
    constraints=(
        Constraint(
            text="Nothing here is real.", source_kind="configuration", source_ref="examples.lives.agent",
            source_version="1",
        ),
        Constraint(
            name="at most 500", text="A payment is at most 500.00 EUR.",
            predicate="tool != 'pay' || money(arguments.amount) <= money('500.00')", source_kind="configuration",
            source_ref="examples.lives.agent", source_version="1",
        ),
    ),
)  # fmt: skip

#: The same under a name of its own: the policy that its tenant holds for it counts for no other run.
RULED = replace(LIVES, name="ruled", title="Rehearsal of a new policy", takes_over=())

#: The same, with limits that a file states which changes while its run is not looked at.
SCOPE = Path(settings.HANDOFF_HOME.root) / "rehearsal-scope.json"
SCOPED = replace(
    LIVES,
    name="scoped",
    title="Rehearsal of a wider scope",
    takes_over=(),
    configuration=Configuration(path=str(SCOPE)),
)
