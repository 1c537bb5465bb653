"""`append` and `load`: the only writer of events and of runs' projections, and the only reader of whole logs.

AppendRefused              nothing was written
  RunChangedMeanwhile      another event came first: load the run again and decide again
  LeaseLost                another worker holds the run: stop
  ClockMoved               the database's clock is elsewhere: read it and decide again
  SendRefused              what the send rests on does not hold any more: revalidate
  RunMissing               there is no such run in this tenant
LogUnreadable              the log cannot be reduced by this build; `seq` is the offending event
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

import msgspec
import psycopg
from django.db import connection

from runs import crash
from runs.machine import events as e
from runs.machine import projection
from runs.machine import state as s
from runs.machine.evolve import evolve, reduce
from runs.machine.transitions import Refused
from runs.models import Effect
from runs.prepared import Prepared, array

SCHEMA_VERSION = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_APPEND = Prepared(name="handoff_append", sql=f"SELECT handoff_append({', '.join(['%s'] * 18)})::text")
_LOG = (
    "SELECT seq, type, version, at, actor_kind, actor_id, actor_name, body FROM runs_event "
    "WHERE run_id = %s AND seq > %s AND seq <= %s"
)
_LAST = 2**31 - 1
_encode = msgspec.json.Encoder().encode
#: What reducing a damaged log raises: a pair that the table lacks, or a part that no event made.
_UNREDUCED = (Refused, LookupError, ValueError, AttributeError, StopIteration, msgspec.MsgspecError)


class AppendRefused(Exception):
    """Nothing was written."""


class RunChangedMeanwhile(AppendRefused):
    """The run has another event than the decision was made on. Load it again and decide again."""


class LeaseLost(AppendRefused):
    """A newer token holds the run. Stop; only evidence may still be stored."""


class ClockMoved(AppendRefused):
    """The time given is more than a second from the database's. Read the clock and decide again."""


class RunMissing(AppendRefused):
    """There is no such run in this tenant."""


class SendRefused(AppendRefused):
    """The send's checks failed in its transaction. `check` says which; `detail` has the facts."""

    def __init__(self, check: str, detail: dict[str, Any]) -> None:
        self.check, self.detail = check, detail
        super().__init__(check)


class LogUnreadable(Exception):
    """The log cannot be reduced by this build. `seq` is the offending event; nothing was changed."""

    def __init__(self, run: str, seq: int, why: str) -> None:
        self.run, self.seq, self.why = run, seq, why
        super().__init__(f"{run}: event {seq}: {why}")


@dataclass(frozen=True, kw_only=True)
class Guard:
    """What a send must find in its own transaction. `request` None: approved by policy."""

    system: str
    operation_id: str
    lineage: str  #: its other runs are looked at even where the ids may repeat
    principal: str
    request: str | None = None
    digest: str = ""
    repeatable: bool = False  #: what other lineages hold is no obstacle
    agent: str = ""
    policy: str = ""  #: the version that the plan was judged by; it must be the one in force
    own_policy: str = ""  #: the version of the agent's own, in force where the tenant holds none
    constraints: Mapping[str, str] | None = (
        None  #: those held here that it rests on: reference -> accepted version
    )
    configurations: Mapping[str, str] | None = (
        None  #: documents that it rests on: source -> digest as last heard
    )
    grant: str | None = None  #: None: no grant was recorded; then the principal alone is looked at
    scopes: tuple[str, ...] = ()  #: one of these has to be lent
    cost: str | None = None  #: what the send reserves on the grant

    def as_json(self) -> bytes:
        """As the database function reads it; without a request it has no approval to look for."""
        shown = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return _encode({k: v for k, v in shown.items() if v is not None})


def append(
    state: s.RunState | None,
    events: Sequence[e.Event],
    *,
    actor: e.Actor,
    now: datetime,
    token: int | None = None,
    lease: timedelta | None = None,
    guard: Guard | None = None,
) -> s.RunState:
    """Write the events and move the projection, in one statement; the new state is returned.

    `state` is what the decision was made on, None for the first event of a run whose row exists. A worker
    gives its `token`, and `lease` where the lease is to reach at least that far. Raises AppendRefused;
    transitions.Refused where the machine does not allow an event, before anything is sent.
    """
    at = max(now, state.at) if state else now
    new, states = _reduced(state, events, actor, at)
    written = [
        *_decided_on(state, new, token),
        *_recorded(at, actor, events, states),
        *_moved(state, new),
        f"{lease // _MICROSECOND} microseconds" if lease else None,
        guard.as_json().decode() if guard else None,
    ]
    crash.reach_each(new.identity.run, "before", events)
    refusal = _APPEND.call(written)
    if refusal is not None:
        raise _refusal(msgspec.json.decode(refusal), new.identity.run)
    crash.reach_each(new.identity.run, "after", events)
    return new


def foreseen(state: s.RunState, events: Sequence[e.Event], *, actor: e.Actor, now: datetime) -> s.RunState:
    """What an `append` of the same would return; nothing is written."""
    return _reduced(state, events, actor, max(now, state.at))[0] if events else state


def bind_version(state: s.RunState) -> None:
    """The run's row after a move to other code, in the transaction of its event.

    The token is raised: whoever still holds the run holds it with the code from before, and has to let go.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_run SET agent_version = %s, lease_token = lease_token + 1, lease_until = NULL, "
            "lease_holder = '' WHERE id = %s",
            [state.identity.agent_version, state.identity.run],
        )


def _reduced(
    state: s.RunState | None, events: Sequence[e.Event], actor: e.Actor, at: datetime
) -> tuple[s.RunState, list[str]]:
    """The state after the events, and the run's state after each."""
    new, states = state, []
    for event in events:
        seq = new.seq if new else _seq_before(event)
        new = evolve(new, e.Recorded(seq + 1, at, actor, event))
        states.append(new.state.value)
    if new is None:
        raise ValueError("events: there is nothing to append")
    return new, states


def _decided_on(state: s.RunState | None, new: s.RunState, token: int | None) -> tuple[str | None, ...]:
    """Which run, and what has to be so still."""
    seq = state.seq if state else new.taken_in.seq if new.taken_in else 0
    return new.identity.run, new.identity.tenant, str(seq), None if token is None else str(token)


def _seq_before(first: e.Event) -> int:
    """How many events there are before a log's first one that are not here."""
    return first.seq if isinstance(first, e.RunTakenIn) else 0


def place(state: s.RunState) -> None:
    """The rows of effects that a run brings with it from its checkpoint, in the transaction of its first event here:
    `handoff_append` inserts those only whose intent is among the events.
    """
    rows = projection.changes(None, state)["effects"]
    Effect.objects.bulk_create([Effect(**row) for row in rows])


def _recorded(at: datetime, actor: e.Actor, events: Sequence[e.Event], states: list[str]) -> tuple[str, ...]:
    types = [type(x) for x in events]
    return (
        at.isoformat(), actor.kind.value, actor.id, actor.name, array([x.__name__ for x in types]),
        array([str(e.VERSIONS[x]) for x in types]), array([e.encode(x) for x in events]), array(states),
    )  # fmt: skip


def _moved(state: s.RunState | None, new: s.RunState) -> tuple[str | None, ...]:
    """What moved of the projection: wake-up time, the run's row, effects, the rest."""
    wake_at, row = projection.wake_at(new), projection.moved_row(state, new)
    rows = projection.changes(state, new)
    effects = [projection.moved_effect(state, x) for x in rows.pop("effects")]
    return (
        wake_at.isoformat() if wake_at else None, _json(row), _json(effects),
        _json(rows if any(rows.values()) else None),
    )  # fmt: skip


def _json(value: Any) -> str | None:
    return _encode(value).decode() if value else None


def _refusal(answer: dict[str, Any], run: str) -> AppendRefused:
    refused, detail = answer["refused"], answer.get("detail")
    plain = {"missing": RunMissing, "token": LeaseLost, "seq": RunChangedMeanwhile, "clock": ClockMoved}
    if kind := plain.get(refused):
        return kind(f"{run}: {refused} {detail}")
    return SendRefused(refused, detail or {})


def stored(run_id: str, *, after: int, events: Sequence[e.Event]) -> bool:
    """Whether just these events follow seq `after`: an append whose acknowledgement was lost had been made."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT body_digest FROM runs_event WHERE run_id = %s AND seq > %s ORDER BY seq LIMIT %s",
            [run_id, after, len(events)],
        )
        found = [bytes(row[0]) for row in cursor.fetchall()]
    return found == [hashlib.sha256(e.encode(event).encode()).digest() for event in events]


def load(run_id: str) -> s.RunState:
    """The run's state, reduced from its log. Raises RunMissing; LogUnreadable with the offending seq."""
    seen = 0

    def passing() -> Iterator[e.Recorded]:
        nonlocal seen
        for recorded in log(run_id):
            seen = recorded.seq
            yield recorded

    try:
        # One at a time: ten thousand events at once do not fit into a processor's cache.
        state = reduce(passing())
    except _UNREDUCED as error:
        if not seen:
            raise RunMissing(run_id) from None
        raise LogUnreadable(run_id, seen, str(error) or type(error).__name__) from error
    return state


def log(run_id: str, *, after: int = 0, until: int | None = None) -> Iterator[e.Recorded]:
    """The run's events in order, decoded. Raises LogUnreadable at the first that this build cannot read."""
    actors: dict[tuple[str, str, str], e.Actor] = {}
    for seq, type_, version, at, kind, actor_id, name, body in _rows(run_id, after, until):
        if (actor := actors.get((kind, actor_id, name))) is None:
            actor = actors[kind, actor_id, name] = e.Actor(e.ActorKind(kind), actor_id, name)
        if body is None:
            raise LogUnreadable(run_id, seq, "its body was erased")
        try:
            event = e.decode(seq=seq, type_=type_, version=version, body=body)
        except (e.UnknownEvent, msgspec.ValidationError, msgspec.DecodeError) as error:
            raise LogUnreadable(run_id, seq, str(error)) from error
        yield e.Recorded(seq, at, actor, event)


def _rows(run_id: str, after: int, until: int | None) -> list[tuple[Any, ...]]:
    """In PostgreSQL's binary form, which is read twice as fast.

    In order already, but for chance: to sort them here is nothing, there it would be a sort of all bodies on disk.
    """
    last = until if until is not None else _LAST
    connection.ensure_connection()
    with connection.wrap_database_errors:
        cursor = psycopg.Cursor(connection.connection)
        rows = cursor.execute(_LOG, [run_id, after, last], prepare=True, binary=True).fetchall()
    rows.sort(key=itemgetter(0))
    return rows


@dataclass(frozen=True, slots=True)
class Link:
    """An event of a hash chain: its seq and its hash."""

    seq: int
    hash: bytes


def chain_problem(run_id: str) -> str:
    """What is wrong with the run's hash chain, or nothing. Erased bodies are checked by their digest alone."""
    return verified_chain(run_id)[0]


def verified_chain(run_id: str, *, since: Link | None = None) -> tuple[str, Link]:
    """As `chain_problem`, with the last event; from the event on up to which the chain was found whole before.

    Whether an event before that was changed since then, only the whole chain tells.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq, type, version, at, state_before, state_after, body, body_digest, actor_kind, actor_id, "
            "actor_name, previous, hash FROM runs_event WHERE run_id = %s AND seq >= %s ORDER BY seq",
            [run_id, since.seq if since else 0],
        )
        rows = cursor.fetchall()
        cursor.execute("SELECT seq, head FROM runs_run WHERE id = %s", [run_id])
        seq, head = cursor.fetchone()
    begins = _begins(rows, since)
    problem = _broken_link(run_id, rows, *begins) or _broken_end(rows, seq, bytes(head))
    if since and rows and bytes(rows[0][12]) != since.hash:
        problem = f"event {since.seq} is not as it was stored"
    return problem, Link(seq, bytes(head))


def _begins(rows: list[tuple[Any, ...]], since: Link | None) -> tuple[int, bytes]:
    """The seq that the first row must have, and the hash before it."""
    if not rows:
        return 1, b""
    first = rows[0]
    return (since.seq, bytes(first[11])) if since else log_begins(first[0], first[1], first[6])


def _broken_link(run_id: str, rows: list[tuple[Any, ...]], expected: int, previous: bytes) -> str:
    for row in rows:
        if row[0] != expected or bytes(row[11]) != previous:
            return f"event {expected} is missing or does not follow the one before it"
        if row[6] is not None and hashlib.sha256(row[6].encode()).digest() != bytes(row[7]):
            return f"the body of event {expected} is not the one that was stored"
        if chained(run_id, row) != bytes(row[12]):
            return f"event {expected} is not as it was stored"
        previous, expected = bytes(row[12]), expected + 1
    return ""


def _broken_end(rows: list[tuple[Any, ...]], seq: int, head: bytes) -> str:
    ends, last = (rows[-1][0], bytes(rows[-1][12])) if rows else (0, b"")
    return "" if (ends, last) == (seq, head) else f"the log ends at event {ends}, the run says {seq}"


def log_begins(seq: int, type_: str, body: str | None) -> tuple[int, bytes]:
    """Which seq the first event of a log must have, and which hash stands before it, by what the first one stored says.

    A log begins at 1 and with nothing before it, or after the event at which the run's checkpoint was written.
    """
    if type_ != e.RunTakenIn.__name__:
        return 1, b""
    try:
        event = e.decode(seq=seq, type_=type_, version=1, body=body or "")
        assert isinstance(event, e.RunTakenIn)
        return event.seq + 1, bytes.fromhex(event.head)
    except (msgspec.MsgspecError, ValueError):
        return 1, b""


def chained(run_id: str, row: tuple[Any, ...]) -> bytes:
    """The hash of an event, as the database function makes it."""
    seq, type_, version, at, before, after, _, digest, kind, actor_id, name, previous, _ = row
    micros = (at - _EPOCH) // _MICROSECOND
    parts = [
        bytes(previous).hex(), run_id, seq, type_, version, micros, before, after, bytes(digest).hex(), kind,
        actor_id, name,
    ]  # fmt: skip
    return hashlib.sha256("\n".join(map(str, parts)).encode()).digest()
