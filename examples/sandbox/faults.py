"""How requests go wrong: before they are executed, after, and on the wire."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus
from typing import Literal, Protocol

from examples.sandbox.records import AnswerAs, Switches
from examples.sandbox.wire import Answer, Refusal, Request, answered
from examples.sandbox.world import World, clock

LOOK_FOR_CLIENT_EVERY = 0.1  # seconds


class ConnectionDropped(Exception):
    """Close the connection and answer nothing."""


class Client(Protocol):
    """The other end of a connection."""

    def left(self) -> bool:
        """Whether it has closed the connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A request that waits, as the page shows it."""

    id: int
    when: Literal["before", "after"]
    path: str
    operation_id: str
    since: datetime


class Holds:
    """Requests that wait until they are released or their client leaves. They do not outlive the process."""

    def __init__(self) -> None:
        """Nothing waits yet."""
        self._changed = threading.Condition()
        self._waiting: dict[int, Held] = {}
        self._ids = itertools.count(1)

    def waiting(self) -> list[Held]:
        """What waits now, oldest first."""
        with self._changed:
            return list(self._waiting.values())

    def release(self) -> int:
        """Let all go on. Returns how many there were."""
        with self._changed:
            released = len(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return released

    def wait(self, request: Request, client: Client, *, when: Literal["before", "after"]) -> None:
        """Block until released. Raises ConnectionDropped when the client left first."""
        with self._changed:
            held = self._enter(request, when)
            while held.id in self._waiting:
                if client.left():
                    del self._waiting[held.id]
                    raise ConnectionDropped
                self._changed.wait(LOOK_FOR_CLIENT_EVERY)

    def _enter(self, request: Request, when: Literal["before", "after"]) -> Held:
        held = Held(
            id=next(self._ids),
            when=when,
            path=request.path,
            operation_id=request.operation_id,
            since=clock(),
        )
        self._waiting[held.id] = held
        return held


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Serves requests as the switches say."""

    world: World
    holds: Holds

    def serve(
        self, request: Request, client: Client, *, endpoint: Callable[[], Answer], asks: bool
    ) -> Answer:
        """Serve with all faults. `asks`: it is a question about what was executed.

        Raises ConnectionDropped where no answer may be given.
        """
        if self._out(asks=asks):
            return answered(_unavailable)
        if not self._meant(request):
            return answered(endpoint)
        time.sleep(self.world.switches.slow_seconds)
        executes = request.method == "POST"
        answer = self._execute(request, client, endpoint) if executes else answered(endpoint)
        return _disguised(answer, self.world.switches)

    def _execute(self, request: Request, client: Client, endpoint: Callable[[], Answer]) -> Answer:
        if self.world.use_up("hold_before"):
            self.holds.wait(request, client, when="before")
        answer = answered(endpoint)
        if answer.ok and self.world.use_up("drop_after"):
            raise ConnectionDropped
        if answer.ok and self.world.use_up("hold_after"):
            self.holds.wait(request, client, when="after")
        return answer

    def _out(self, *, asks: bool) -> bool:
        switches = self.world.switches
        return switches.down or (switches.outage and asks)

    def _meant(self, request: Request) -> bool:
        return self.world.switches.match(operation_id=request.operation_id, path=request.path)


def _unavailable() -> Answer:
    raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", "The service is out of order.")


def _disguised(answer: Answer, switches: Switches) -> Answer:
    match switches.answer_as:
        case AnswerAs.JSON:
            return answer
        case AnswerAs.TRUNCATED:
            return replace(answer, body=answer.body[: len(answer.body) // 2])
        case AnswerAs.HTML:
            page = b"<!doctype html><title>Welcome</title><p>Please sign in to the network."
            return replace(answer, body=page, content_type="text/html; charset=utf-8")
