"""What the service remembers: the lines of its journal, and the values folded from them. All frozen."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

ACCOUNT = "acct_demo"

#: One line of text: not blank at either end, no control characters.
Line = Annotated[
    str,
    Meta(
        min_length=1, max_length=400, pattern=r"\A[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?\Z"
    ),
]
Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=r"\A[^\s\x00-\x1f\x7f]+\Z")]
Amount = Annotated[str, Meta(pattern=r"\A(0|[1-9][0-9]{0,9})\.[0-9]{2}\Z")]
Currency = Annotated[str, Meta(pattern=r"\A[A-Z]{3}\Z")]
Seconds = Annotated[float, Meta(ge=0, le=86_400)]
Count = Annotated[int, Meta(ge=0, le=10_000)]


class Kind(StrEnum):
    """What can be executed. The value is the prefix of the ids that the service gives out."""

    REFUND = "rf"
    MAIL = "msg"
    CLOSURE = "cl"
    REOPENING = "re"


class AnswerAs(StrEnum):
    """How an answer looks on the wire: whole, as a web page, or cut in the middle."""

    JSON = "json"
    HTML = "html"
    TRUNCATED = "truncated"


class Order(Struct, frozen=True, kw_only=True):
    """An order. `version` starts at 1 and moves with every change; it is also the ETag."""

    id: Name
    supplier: Line
    email: Line
    amount: Amount
    currency: Currency
    ticket: Name
    version: int


class Execution(Struct, frozen=True, kw_only=True):
    """One thing that was really done, with the request that asked for it."""

    id: str
    kind: Kind
    operation_id: str
    key: str
    request: dict[str, str]
    at: datetime
    #: Until then the service calls it pending.
    final_at: datetime

    def key_honoured(self, *, now: datetime, retention: timedelta) -> bool:
        """Whether a request with the same key still gets the first answer."""
        return now < self.at + retention

    def answer(self, *, now: datetime) -> dict[str, str]:
        """What the service says about it at `now`."""
        return {
            **self.request,
            "id": self.id,
            "operation_id": self.operation_id,
            "key": self.key,
            "account": ACCOUNT,
            "status": "final" if now >= self.final_at else "pending",
            "created_at": self.at.isoformat(),
        }


class Switches(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the service misbehaves. The counts are used up by the writes that they hit."""

    #: Execute, then never answer (until released, or the client leaves).
    hold_after: Count = 0
    #: Execute, then close the connection without an answer.
    drop_after: Count = 0
    #: Do not execute until released; a client that leaves before that was never served.
    hold_before: Count = 0
    #: Wait before executing. A client that left meanwhile is served all the same.
    slow_seconds: Seconds = 0.0
    #: New refunds count as pending for that long.
    pending_seconds: Seconds = 0.0
    answer_as: AnswerAs = AnswerAs.JSON
    #: Questions about what was executed answer 503; orders can still be read.
    outage: bool = False
    #: Everything but the control pages answers 503.
    down: bool = False
    #: How long an idempotency key is remembered.
    key_retention: Seconds = 600.0
    #: The faults above, outage and down excepted, hit only this operation id and paths that begin so.
    #: Empty: all.
    match_operation: str = ""
    match_path: str = ""

    def match(self, *, operation_id: str, path: str) -> bool:
        """Whether a request is one that the faults are meant for."""
        return self.match_operation in ("", operation_id) and path.startswith(self.match_path)

    def ended(self) -> Switches:
        """Everything in order again; only the retention of keys stays as it was set."""
        return Switches(key_retention=self.key_retention)


class OrderSet(Struct, frozen=True, tag="order_set"):
    """An order was loaded or changed."""

    order: Order


class Executed(Struct, frozen=True, tag="executed"):
    """Something was done."""

    execution: Execution


class Switched(Struct, frozen=True, tag="switched"):
    """The switches were moved, by a person or by being used up."""

    switches: Switches


Record = OrderSet | Executed | Switched


def more_than(amount: str, limit: str) -> bool:
    """Compare two amounts as money, not as text."""
    return Decimal(amount) > Decimal(limit)


def encode(record: Record) -> bytes:
    """One line of the journal, without its line end."""
    return msgspec.json.encode(record)


def decode(line: bytes) -> Record:
    """The record of one line.

    Raises msgspec.DecodeError (or its ValidationError) where the line is not one.
    """
    return msgspec.json.decode(line, type=Record)
