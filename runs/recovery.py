"""Claim, hold, release, sweep; and asking the outside what became of an effect.

A claim is a lease with a fencing token. The token decides, not the lease's expiry: an older holder's
decisions fail in the ledger, its evidence does not.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction

from runs import actions, agents, outbox, wakes
from runs.clock import Clock
from runs.host import boot_id, uptime, worker_name
from runs.ledger import (
    ClockMoved,
    Guard,
    LeaseLost,
    LogUnreadable,
    RunChangedMeanwhile,
    SendRefused,
    foreseen,
    load,
    stored,
)
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import ESCAPED, Uncanonical, canonical, parse, plain
from runs.machine.late import Bindings
from runs.machine.safety import Answered, next_safe_action
from runs.models import CLOSED, Run, Worker
from runs.tools import Ambiguous, Call, Found, Match, WritingTool

log = logging.getLogger(__name__)

CLAIMS_WITHOUT_EVENT = 5
VOID_AT_MOST = 200  #: runs told of another policy by one sweep, each in a transaction of its own
MARK_AT_MOST = 500  #: runs that one sweep tells of constraints that changed where they are held
UNREADABLE_PAUSE = timedelta(seconds=60)
#: How long a receipt is tried to be stored while the database is away. After that the effect is reconciled.
EVIDENCE_PATIENCE = timedelta(seconds=60)
RECONNECT_PAUSE = 0.2  # seconds
SWEEP_AT_MOST = 1000  #: woken and not yet taken, at any time
#: How often the clock is read anew for one decision; a machine that is slower than that every time gives up.
CLOCK_READS = 3
#: Sends that their own transaction refused although revalidation let them pass, before a person is asked.
REFUSED_SENDS = 3
Decider = Callable[[s.RunState, datetime], Sequence[e.Event]]


class EvidenceDecider(Protocol):
    """As a Decider, and told whether the run is held by another now."""

    def __call__(self, state: s.RunState, now: datetime, /, late: bool) -> Sequence[e.Event]: ...


@dataclass(frozen=True, kw_only=True)
class Sending:
    """A send to be stored: what decides its events, on what terms and where, and what it must find."""

    decider: Decider
    terms: e.Terms
    account: str
    guard: Guard
    bindings: Bindings | None = None  #: what was bound to the arguments that the step had left open

    @property
    def lease(self) -> timedelta:
        """How far the lease has to reach from here: to the end of the last possible call."""
        return max(self.terms.dispatch_window + self.terms.timeout, settings.HANDOFF_DURATIONS.lease)


#: The send that may be stored with the receipt before it, of the state that the receipt leads to; None: none may.
Follower = Callable[[s.RunState], Sending | None]


_CLAIM = """
UPDATE runs_run SET lease_token = lease_token + 1, lease_until = handoff_now() + %(lease)s, lease_holder = %(worker)s,
    claims = claims + 1
WHERE id = %(run)s AND NOT state = ANY(%(closed)s) AND wake_at <= handoff_now()
    AND (lease_until IS NULL OR lease_until <= handoff_now())
RETURNING lease_token, claims
"""
_NOTE = """
WITH last AS (SELECT history FROM runs_claim WHERE run_id = %s ORDER BY token DESC LIMIT 1)
INSERT INTO runs_claim (run_id, tenant_id, token, seq, worker, answer, history, at)
VALUES (%s, %s, %s, %s, %s, %s, handoff_history(), handoff_now())
RETURNING coalesce((SELECT history FROM last), ''), history, at
"""
_RELEASE = "UPDATE runs_run SET lease_until = %s WHERE id = %s AND lease_token = %s"
_UNSERVED = """
WITH came AS MATERIALIZED (
    SELECT id, agent_id, agent_version, wake_at FROM runs_run
    WHERE NOT state IN ('succeeded', 'cancelled', 'restarted') AND wake_at <= handoff_now() - %(late)s
        AND (lease_until IS NULL OR lease_until <= handoff_now())
)
SELECT r.id, a.name, r.agent_version FROM came r JOIN runs_agent a ON a.id = r.agent_id
WHERE NOT 'agent.' || a.name || '.' || r.agent_version = ANY(%(served)s)
ORDER BY r.wake_at LIMIT %(most)s
"""


@dataclass
class Held:
    """A run that this process holds: its state, its agent's code, and the token that its decisions carry."""

    run: Run
    state: s.RunState
    token: int
    agent: agents.Agent
    clock: Clock
    first_seq: int = field(init=False)
    tried: tuple[int, Sequence[e.Event]] = field(init=False)  #: the latest append: after which seq, what
    refused_sends: int = 0

    def __post_init__(self) -> None:
        self.first_seq = self.state.seq
        self.tried = self.state.seq, ()
        self.actor = e.Actor(e.ActorKind.WORKER, worker_name(), worker_name())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the run back, unless the database is away: then the lease ends by itself. One that ended is nobody's."""
        if self.state.state not in s.TERMINAL and not isinstance(error, OperationalError | InterfaceError):
            _release(self.run.pk, self.token, None)

    def validated(self, state: s.RunState) -> bool:
        """Whether a revalidation passed since this claim, and since the run last came back from a stop."""
        passed = state.revalidation
        return bool(passed and passed.passed and passed.seq > max(self.first_seq, state.returned_seq))

    def decide(self, decider: Decider, *, lease: timedelta | None = None, guard: Guard | None = None) -> None:
        """Append what follows from the state now. Raises ledger.AppendRefused, but for a clock that moved."""
        lease = max(lease or timedelta(), settings.HANDOFF_DURATIONS.lease)
        for _ in range(CLOCK_READS):
            try:
                return self._write(decider, self.token, lease, guard)
            except ClockMoved:
                self.clock.read()
            except (OperationalError, InterfaceError):
                if self._was_stored():
                    return self._still_last()
        return self._write(decider, self.token, lease, guard)

    def _write(
        self, decider: Decider, token: int | None, lease: timedelta | None, guard: Guard | None
    ) -> None:
        self.tried = self.state.seq, ()
        now = max(self.clock.now(), self.state.at)
        self._append(decider(self.state, now), now, token, lease, guard)

    def _append(
        self,
        events: Sequence[e.Event],
        now: datetime,
        token: int | None,
        lease: timedelta | None,
        guard: Guard | None,
    ) -> None:
        if events:
            self.tried = self.state.seq, events
            self.state = actions.write(
                self.state,
                events,
                run=self.run,
                actor=self.actor,
                now=now,
                token=token,
                lease=lease,
                guard=guard,
            )

    def evidence(self, decider: EvidenceDecider, *, then: Follower | None = None) -> bool:
        """Store what came back from outside: in any state, with or without the lease, until it is stored.

        `decider` is told whether another holds the run by now, so that it only keeps what came. `then` is the send
        that may go into the same transaction; whether one did, and nothing came after it. Where it is refused, the
        evidence is stored without it.
        """
        late, end = False, uptime() + EVIDENCE_PATIENCE
        while True:
            try:
                self._keep(partial(decider, late=late), None if late else self.token, None if late else then)
                return self._sent_last()
            except SendRefused:
                then = None
            except (LeaseLost, ClockMoved, RunChangedMeanwhile, OperationalError, InterfaceError) as error:
                if uptime() > end:
                    raise
                late = late or isinstance(error, LeaseLost)
                if self._ready_again(error):
                    return self._sent_last()

    def _keep(self, decider: Decider, token: int | None, then: Follower | None) -> None:
        self.tried = self.state.seq, ()
        now = max(self.clock.now(), self.state.at)
        events = decider(self.state, now)
        sending, sends = self._following(events, now, then) if then else (None, ())
        if sending is None:
            return self._append(events, now, token, None, None)
        return self._append((*events, *sends), now, token, sending.lease, sending.guard)

    def _following(
        self, events: Sequence[e.Event], now: datetime, then: Follower
    ) -> tuple[Sending | None, Sequence[e.Event]]:
        """The send after the evidence. Whatever goes wrong here must not keep the evidence from being stored."""
        try:
            after = foreseen(self.state, events, actor=self.actor, now=now)
            sending = then(after)
            return sending, sending.decider(after, now) if sending else ()
        except Exception:
            log.exception("the next send was not prepared", extra={"run": self.run.pk, "tool": ""})
            return None, ()

    def _sent_last(self) -> bool:
        """Whether the latest append holds a send of ours, and is the latest of the run."""
        after, events = self.tried
        sent = any(isinstance(event, e.EffectIntended | e.EffectSent) for event in events)
        return sent and self.state.seq == after + len(events)

    def _ready_again(self, error: Exception) -> bool:
        """Make ready to store once more; True where it was stored after all."""
        try:
            match error:
                case ClockMoved():
                    self.clock.read()
                case RunChangedMeanwhile():
                    self.reload()
                case OperationalError() | InterfaceError():
                    return self._was_stored()
        except (OperationalError, InterfaceError):
            log.warning("the database is still away", extra={"run": self.run.pk})
        return False

    def _still_last(self) -> None:
        """What was stored is acted on only where nothing came after it."""
        after, events = self.tried
        if self.state.seq != after + len(events):
            raise RunChangedMeanwhile(self.run.pk)

    def _was_stored(self) -> bool:
        """The connection ended during an append: come back, and see whether it had been written by then."""
        log.warning("the database went away during an append", extra={"run": self.run.pk})
        connection.close()
        time.sleep(RECONNECT_PAUSE)
        after, events = self.tried
        if not events or not stored(self.run.pk, after=after, events=events):
            return False
        self.reload()
        return True

    def reload(self) -> None:
        """Somebody else's event came first: look again."""
        self.state = load(self.run.pk)


def claim(run_id: str) -> Held | None:
    """Take the run where it is due and nobody holds it; None: it is not ours to move now."""
    try:
        return _claim(run_id)
    except LogUnreadable:
        log.exception("the log cannot be reduced; the run is left alone for a while", extra={"run": run_id})
        _leave_alone(run_id)
        return None


def _claim(run_id: str) -> Held | None:
    with transaction.atomic():
        taken = _take(run_id)
        if taken is None:
            return None
        token, claims = taken
        run = Run.objects.select_related("agent").get(pk=run_id)
        agent = agents.registered().get((run.agent.name, run.agent_version))
        state = load(run_id)
        was, now, at = _noted(run, token, state)
        if agent is None:
            _unserved(run_id, token)
            return None
    held = Held(run=run, state=state, token=token, agent=agent, clock=Clock(at))
    held.decide(lambda state, _: decide.history(state, was=was, now=now))
    return _progressing(held, claims)


def _noted(run: Run, token: int, state: s.RunState) -> tuple[str, str, datetime]:
    """Store the claim; the database's history under the run's last one (empty: it had none), and now, and the time."""
    answer = msgspec.json.encode(next_safe_action(state)).decode()
    with connection.cursor() as cursor:
        cursor.execute(_NOTE, [run.pk, run.pk, run.tenant_id, token, state.seq, worker_name(), answer])
        found: tuple[str, str, datetime] = cursor.fetchone()
    return found


def _progressing(held: Held, claims: int) -> Held | None:
    """The held run, unless it was claimed again and again without a single event."""
    if claims <= CLAIMS_WITHOUT_EVENT:
        return held
    with held:
        held.decide(
            lambda state, now: (*decide.found_open(state), *decide.human("no_progress", evidence=str(claims)))
        )
    return None


def _sql() -> Any:
    """Django's cursor. Its stubs know no timedelta, which psycopg writes as an interval."""
    return connection.cursor()


def _take(run_id: str) -> tuple[int, int] | None:
    lease = settings.HANDOFF_DURATIONS.lease
    with _sql() as cursor:
        cursor.execute(_CLAIM, {"run": run_id, "lease": lease, "worker": worker_name(), "closed": CLOSED})
        row: tuple[int, int] | None = cursor.fetchone()
    return row


def _release(run_id: str, token: int, until: datetime | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE, [until, run_id, token])


def _unserved(run_id: str, token: int) -> None:
    """This process lacks the version: the run rests for a lease, and the claim says nothing about its progress."""
    with _sql() as cursor:
        cursor.execute(
            "UPDATE runs_run SET lease_until = handoff_now() + %s, claims = claims - 1 "
            "WHERE id = %s AND lease_token = %s",
            [settings.HANDOFF_DURATIONS.lease, run_id, token],
        )


def _leave_alone(run_id: str) -> None:
    with _sql() as cursor:
        cursor.execute(
            "UPDATE runs_run SET lease_until = handoff_now() + %s WHERE id = %s", [UNREADABLE_PAUSE, run_id]
        )


def call_of(effect: s.Effect, expects: dict[str, str]) -> Call:
    """The send of an effect, as its tool is given it."""
    return Call(
        arguments=parse(effect.arguments), operation_id=effect.operation_id, key=effect.key,
        timeout=effect.terms.timeout, expects=expects,
    )  # fmt: skip


def ask(effect: s.Effect, tool: WritingTool) -> tuple[Answered, str, Found | None]:
    """Ask the outside what became of an effect: the answer, its evidence as canonical text, and it as it
    came.

    Sends nothing. Called outside every transaction.
    """
    asked_at = uptime()
    found = _queried(effect, tool)
    if isinstance(found, Ambiguous):
        return (
            _answered(plain(found.detail) or "no answer", (), effect.account, asked_at),
            keepable(found.evidence),
            None,
        )
    matches = tuple(_match(m) for m in found.matches)
    return _answered(None, matches, plain(found.account), asked_at), keepable(found.evidence), found


def _queried(effect: s.Effect, tool: WritingTool) -> Found | Ambiguous:
    try:
        return tool.query(call_of(effect, {}))
    except Exception as error:
        # A fault in an adapter is no answer: it is asked again, and in the end a person is.
        log.exception("the query failed", extra={"tool": tool.name, "effect": effect.number})
        return Ambiguous(detail=f"{type(error).__name__} in the tool {tool.name}")


def _answered(
    failure: str | None, matches: tuple[e.MatchFound, ...], account: str, asked_at: timedelta
) -> Answered:
    return Answered(failure=failure, matches=matches, account=account, boot=boot_id(), uptime=asked_at)


def _match(match: Match) -> e.MatchFound:
    return e.MatchFound(
        reference=plain(match.reference), operation_id=plain(match.operation_id),
        key=None if match.key is None else plain(match.key), account=plain(match.account),
        final=match.final, reversed=match.reversed, arguments=e.raw(canonical(_comparable(match.arguments))),
    )  # fmt: skip


def _comparable(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Each argument of a record as it can be compared: one without canonical form is different from any sent."""
    return {plain(str(name)): parse(keepable(value)) for name, value in arguments.items()}


def keepable(evidence: Any) -> str:
    """Canonical text of whatever came back. What has none is kept as escaped text inside it: nothing is
    lost.
    """
    try:
        return canonical(evidence)
    except Uncanonical:
        return canonical({ESCAPED: _escaped(evidence)})


def _escaped(evidence: Any) -> str:
    try:
        return json.dumps(evidence, ensure_ascii=True, default=repr)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(evidence).__name__} that cannot be written as JSON"


def sweep() -> int:
    """Wake every run whose time has come, that nobody holds and that a live worker serves; how many were woken.

    One whose version nobody has served for the version's grace is handed to a person.
    """
    actions.tell_untold(SWEEP_AT_MOST)
    _record_ends(actions.overdue_runs(SWEEP_AT_MOST), actions.record_expiry)
    _record_ends(actions.unlent_runs(SWEEP_AT_MOST), actions.stop_unlent)
    _record_ends(actions.lapsed_runs(VOID_AT_MOST), actions.void_lapsed)
    _record_ends(actions.overdue_obligations(SWEEP_AT_MOST), actions.record_overdue)
    actions.void_outdated(VOID_AT_MOST)
    actions.mark_constraints(MARK_AT_MOST)
    served = live_serves()
    due = wakes.take(served=served, most=wakes.at_most(limit=SWEEP_AT_MOST))
    _wake(due)
    grace = settings.HANDOFF_DURATIONS.version_grace
    for run_id, _, version in [] if _fleet_is_new() else _unserved_since(grace, served):
        try:
            actions.stop_unserved(run_id=run_id, version=version)
        except LogUnreadable:
            log.exception("the log cannot be reduced", extra={"run": run_id})
            _leave_alone(run_id)
    _swept(len(due))
    return len(due)


def _record_ends(runs: list[str], record: Callable[[str], None]) -> None:
    """That the time of a request is over, a grant, or of what a run owes, where no worker comes to record it."""
    for run_id in runs:
        try:
            record(run_id)
        except LogUnreadable:
            log.exception("the log cannot be reduced", extra={"run": run_id})
            _leave_alone(run_id)


def _wake(due: list[tuple[str, str, str]]) -> None:
    """One message for each run, or for several where many are due. What the broker does not take was not woken."""
    batches = wakes.batches(due)
    for number, ((agent, version), run_ids) in enumerate(batches):
        if not outbox.wake_each(run_ids=run_ids, agent=agent, version=version, lasts=wakes.lasts()):
            wakes.forget([run_id for _, left in batches[number:] for run_id in left])
            return


def _unserved_since(late: timedelta, served: set[str]) -> list[tuple[str, str, str]]:
    """Runs that nobody holds or serves and whose time came at least `late` ago: id, agent, version; longest first."""
    with _sql() as cursor:
        cursor.execute(_UNSERVED, {"served": list(served), "late": late, "most": SWEEP_AT_MOST})
        found: list[tuple[str, str, str]] = cursor.fetchall()
    return found


def _fleet_is_new() -> bool:
    """Whether every live worker started within the grace: after an outage the others may still be on their way."""
    grace = settings.HANDOFF_DURATIONS.version_grace
    with _sql() as cursor:
        cursor.execute(
            "SELECT bool_and(started_at > handoff_now() - %s) FROM runs_worker WHERE last_seen_at > handoff_now() - %s",
            [grace, grace],
        )
        return bool(cursor.fetchone()[0])


def live_serves() -> set[str]:
    """The queues that some worker heard of within the version's grace reads."""
    grace = settings.HANDOFF_DURATIONS.version_grace
    with _sql() as cursor:
        cursor.execute(
            "SELECT unnest(serves) FROM runs_worker WHERE last_seen_at > handoff_now() - %s", [grace]
        )
        return {row[0] for row in cursor.fetchall()}


def _swept(woken: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO runs_sweep (id, at, woken) VALUES (1, handoff_now(), %s) "
            "ON CONFLICT (id) DO UPDATE SET at = excluded.at, woken = excluded.woken",
            [woken],
        )


def announce(name: str) -> None:
    """Say that this worker lives, and which queues it reads."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {Worker._meta.db_table} (name, serves, started_at, last_seen_at) "
            "VALUES (%s, %s, handoff_now(), handoff_now()) ON CONFLICT (name) DO UPDATE "
            "SET serves = excluded.serves, last_seen_at = greatest(runs_worker.started_at, handoff_now())",
            [name, agents.served_queues()],
        )
