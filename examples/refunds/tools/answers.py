"""What the service says, as types. Unknown fields are let through, missing or mistyped ones are not."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

Filled = Annotated[str, Field(min_length=1)]
Money = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,9})\.[0-9]{2}$")]


class Said(BaseModel):
    """Base of every answer."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class Order(Said):
    """An order."""

    id: Filled
    supplier: Filled
    email: Filled
    amount: Money
    currency: Filled
    ticket: Filled
    version: int


class Record(Said):
    """Something that the service did."""

    id: Filled
    operation_id: Filled
    key: Filled
    account: Filled
    status: Literal["final", "pending"]
    created_at: AwareDatetime

    @property
    def final(self) -> bool:
        """Whether it is done for good."""
        return self.status == "final"


class Refund(Record):
    """Money that went back."""

    order: Filled
    amount: Money
    currency: Filled
    supplier: Filled


class Message(Record):
    """A mail that went out."""

    to: Filled
    subject: Filled
    text: str


class Closure(Record):
    """The end of a ticket."""

    ticket: Filled


class Reopening(Closure):
    """The end of that end."""


class Ticket(Said):
    """A ticket, what closed it, and what opened it again last."""

    id: Filled
    state: Literal["open", "closed"]
    closure: Closure | None
    reopening: Reopening | None = None


class Error(Said):
    """A request that the service did not execute."""

    error: Filled
    message: Filled
