"""The Tool protocol: what an adapter to one operation of one external system declares and answers.

A reading tool changes nothing outside; its value becomes an observation. A writing tool makes an effect; it
says what may be done when the outcome of a call is unknown. Tools are called by the engine and by recovery
only, outside every transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

JSON = Any  # what json.loads can return


class ToolError(Exception):
    """A tool could not answer."""


class Unreadable(ToolError):
    """A reading tool could not read: the text says why. Nothing changed outside; try again later."""


class Arguments(BaseModel):
    """Base of every tool's argument schema: strict, frozen, unknown names refused."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class ArgumentsRefused(ToolError):
    """Arguments that the tool's schema refuses. `problems` holds one (path, text) for each."""

    def __init__(self, tool: str, error: ValidationError) -> None:
        self.problems = [(".".join(map(str, e["loc"])) or "(all)", e["msg"]) for e in error.errors()]
        super().__init__(f"{tool}: " + "; ".join(f"{path}: {text}" for path, text in self.problems))


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a reading tool read: any JSON value, the resource it belongs to, and that resource's version."""

    value: JSON
    resource: str  #: such as "order:1042"; the same for every tool that reads or changes it
    version: str  #: an ETag or version as the other side gave it; compared for equality only


@dataclass(frozen=True, kw_only=True)
class Call:
    """One send, as the engine hands it to a writing tool."""

    arguments: Mapping[str, JSON]  #: the validated arguments, as in the approved plan
    operation_id: str  #: with the round's suffix where the round is not 0
    key: str  #: idempotency key, 64 hex digits
    timeout: timedelta  #: hard limit on the whole call, connecting and reading included
    expects: Mapping[str, str] = field(
        default_factory=dict
    )  #: resource -> version, for tools that can pass it on


@dataclass(frozen=True, kw_only=True)
class Executed:
    """The other side says that it did it. `evidence` is its whole answer."""

    reference: str  #: the other side's own id
    account: str  #: the account it was done in
    evidence: JSON
    versions: Mapping[str, str] = field(default_factory=dict)  #: resource -> version that this call produced


@dataclass(frozen=True, kw_only=True)
class Promised:
    """What has to be done because of an effect: an obligation that opens with its receipt."""

    text: str
    to: str = ""  #: to whom
    due: timedelta | None = None  #: from the receipt on


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Definitely not executed: the other side said no before it did anything."""

    detail: str
    evidence: JSON


@dataclass(frozen=True, kw_only=True)
class Ambiguous:
    """Anything else: a time-out, a broken answer, a 5xx, HTML. The effect may have happened or not."""

    detail: str
    evidence: JSON = None


@dataclass(frozen=True, kw_only=True)
class Match:
    """One record that the other side has under an operation id."""

    reference: str
    operation_id: str
    key: str | None  #: the idempotency key it was made under, None where the other side does not tell
    account: str
    final: bool  #: False while it is pending there
    arguments: Mapping[
        str, JSON
    ]  #: the arguments the record shows, by our argument names; compared where present
    reversed: bool = False  #: undone or only done in part


@dataclass(frozen=True, kw_only=True)
class Found:
    """The answer to a query that worked: every record under the operation id, none at all included."""

    matches: tuple[Match, ...]
    account: str  #: the account that was asked
    evidence: JSON


Answer = Executed | Refused | Ambiguous


class Tool:
    """What both kinds have in common. Instances hold no state of a run and may be shared by threads."""

    name: ClassVar[str]
    system: ClassVar[str]  #: the external system, such as "payments"
    schema: ClassVar[type[Arguments]]
    #: Dotted paths of values that only people with the right “See sensitive values” are shown: in its arguments, and in
    #: what it reads or answers. Places in lists are not counted; "" is the whole. Names are no place for such values:
    #: an operation id or a resource made of one is refused.
    sensitive: ClassVar[frozenset[str]] = frozenset()

    def validate(self, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        """The arguments as plain JSON values after the schema. Raises ArgumentsRefused."""
        try:
            return self.schema.model_validate(dict(arguments)).model_dump(mode="json")
        except ValidationError as error:
            raise ArgumentsRefused(self.name, error) from error


class ReadingTool(Tool):
    """Reads one external fact."""

    #: how long a value may be taken for current; agents and the setting HANDOFF_HALF_LIVES say otherwise of a kind of
    #: resource
    half_life: ClassVar[timedelta]
    timeout: ClassVar[timedelta | None] = None  #: None: the default of the durations table

    def read(self, arguments: Mapping[str, JSON], *, timeout: timedelta) -> Reading:
        """Read it now. Raises Unreadable; never returns a guess."""
        raise NotImplementedError


class WritingTool(Tool):
    """Makes one effect. Durations that are None take the default of the durations table."""

    reversible: ClassVar[bool]
    queryable: ClassVar[bool]
    idempotency_retention: ClassVar[
        timedelta | None
    ]  #: how long the other side honours a key; None: it does not
    dispatch_window: ClassVar[timedelta | None] = None
    timeout: ClassVar[timedelta | None] = None
    settle: ClassVar[timedelta | None] = None
    patience: ClassVar[timedelta | None] = None
    guarded: ClassVar[bool] = (
        False  #: each call carries a deadline or precondition that the other side enforces
    )
    #: other lineages of the tenant may do the same operation at any time: an id names no single effect there. Every
    #: record then shows its key, and the evidence of a query is of the records under the call's own
    repeatable_ids: ClassVar[bool] = False
    volatile: ClassVar[frozenset[str]] = frozenset()  #: argument names left out of key and digest
    compensation: ClassVar[str | None] = (
        None  #: the writing tool of the same agent that undoes an effect of this one
    )

    @property
    def account(self) -> str:
        """The account that the calls act in, as the other side names it."""
        raise NotImplementedError

    def operation_id(self, arguments: Mapping[str, JSON]) -> str:
        """The business identity of the effect, without round: computed from the arguments, never random."""
        raise NotImplementedError

    def describe(self, arguments: Mapping[str, JSON]) -> str:
        """A short line for people, facts only: "refund 120.00 EUR to Acme for order 1042"."""
        raise NotImplementedError

    def confirm_phrase(self, arguments: Mapping[str, JSON]) -> str:
        """What an approver types where the effect cannot be undone: amount and target."""
        raise NotImplementedError

    def cost(self, arguments: Mapping[str, JSON]) -> Decimal | None:
        """Money that the effect moves, in the account's currency; None where it moves none."""
        return None

    def undo_arguments(self, arguments: Mapping[str, JSON], reference: str) -> Mapping[str, JSON]:
        """The arguments for `compensation` that undo the effect made with these and known there as `reference`."""
        raise NotImplementedError

    def call(self, call: Call) -> Answer:
        """Do it. Never raises for what the other side does: an unclear outcome is Ambiguous."""
        raise NotImplementedError

    def query(self, call: Call) -> Found | Ambiguous:
        """Ask what became of it, by operation id. Changes nothing outside, may be repeated.

        Never called where `queryable` is False.
        """
        raise NotImplementedError

    def outcome(self, evidence: JSON) -> JSON:
        """The part of a receipt's evidence that later steps may take values from: of a call and of a query the same."""
        return evidence

    def promises(self, arguments: Mapping[str, JSON], evidence: JSON) -> Sequence[Promised]:
        """What has to be done because the effect happened, as its evidence says: of a call and of a query the same."""
        return ()

    def postcondition(self, arguments: Mapping[str, JSON], evidence: JSON) -> str | None:
        """None where the evidence proves that the effect is as ordered, else what is wrong with it."""
        raise NotImplementedError
