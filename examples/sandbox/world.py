"""What has happened so far: the fold of the journal, and the lock under which more may happen."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from examples.sandbox import records
from examples.sandbox.journal import Journal
from examples.sandbox.records import Executed, Execution, Kind, Order, OrderSet, Record, Switched, Switches

CountedFault = Literal["hold_after", "drop_after", "hold_before"]


class JournalDamaged(Exception):
    """A line before the last cannot be read: the file was edited, or the disk lost part of it."""


class World:
    """Orders, executions and switches. Callers that read and then write hold `lock` over both."""

    def __init__(self, journal: Journal) -> None:
        """Rebuild the state from the journal."""
        self.lock = threading.RLock()
        self.orders: dict[str, Order] = {}
        self.executions: list[Execution] = []
        self.switches = Switches()
        self._by_operation: dict[tuple[Kind, str], list[Execution]] = defaultdict(list)
        self._by_key: dict[tuple[Kind, str], Execution] = {}
        self._tickets: dict[str, Execution | None] = {}
        self._reopened: dict[str, Execution] = {}
        self._journal = journal
        for number, line in enumerate(journal.lines(), start=1):
            self._apply(_read(line, number=number, journal=journal))

    def record(self, record: Record) -> None:
        """Store, then let it be true. Whoever answers a client does so after this."""
        with self.lock:
            self._journal.append(records.encode(record))
            self._apply(record)

    def executed(self, *, kind: Kind, operation_id: str) -> list[Execution]:
        """What was done under an operation id, oldest first."""
        with self.lock:
            return list(self._by_operation.get((kind, operation_id), ()))

    def remembered(self, *, kind: Kind, key: str, now: datetime) -> Execution | None:
        """The latest execution under a key, unless the key is forgotten by now."""
        found = self._by_key.get((kind, key))
        retention = timedelta(seconds=self.switches.key_retention)
        return found if found and found.key_honoured(now=now, retention=retention) else None

    def has_ticket(self, ticket: str) -> bool:
        """Whether an order carries this ticket."""
        return ticket in self._tickets

    def closure(self, ticket: str) -> Execution | None:
        """What closed a ticket, if it is closed."""
        return self._tickets.get(ticket)

    def reopening(self, ticket: str) -> Execution | None:
        """What opened a ticket again last, if anything did."""
        return self._reopened.get(ticket)

    def next_id(self, kind: Kind) -> str:
        """A new id. Call it under the lock, and record before leaving it."""
        return f"{kind.value}_{len(self.executions) + 1:06d}"

    def counts(self) -> dict[str, int]:
        """How often each operation id was really executed."""
        with self.lock:
            return dict(Counter(execution.operation_id for execution in self.executions))

    def total(self, kind: Kind) -> int:
        """How many executions of a kind there were."""
        with self.lock:
            return sum(execution.kind is kind for execution in self.executions)

    def use_up(self, fault: CountedFault) -> bool:
        """Take one of a counted fault. False when none is left."""
        with self.lock:
            left: int = getattr(self.switches, fault)
            if left == 0:
                return False
            self.record(Switched(msgspec.structs.replace(self.switches, **{fault: left - 1})))
            return True

    def _apply(self, record: Record) -> None:
        match record:
            case OrderSet(order=order):
                self.orders[order.id] = order
                self._tickets.setdefault(order.ticket, None)
            case Executed(execution=execution):
                self._apply_execution(execution)
            case Switched(switches=switches):
                self.switches = switches

    def _apply_execution(self, execution: Execution) -> None:
        self.executions.append(execution)
        self._by_operation[execution.kind, execution.operation_id].append(execution)
        self._by_key[execution.kind, execution.key] = execution
        if execution.kind is Kind.CLOSURE:
            self._tickets[execution.request["ticket"]] = execution
        if execution.kind is Kind.REOPENING:
            self._tickets[execution.request["ticket"]] = None
            self._reopened[execution.request["ticket"]] = execution


def _read(line: bytes, *, number: int, journal: Journal) -> Record:
    try:
        return records.decode(line)
    except msgspec.DecodeError as error:
        raise JournalDamaged(f"{journal.path}, line {number}: {error}") from error


def clock() -> datetime:
    """The service's own clock; nobody else's is asked."""
    return datetime.now(UTC)
