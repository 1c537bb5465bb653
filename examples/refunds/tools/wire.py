"""One HTTP exchange with the service: a hard limit on the whole of it, and only whole answers."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from http import HTTPStatus
from typing import Any

import httpx
from django.utils.translation import gettext as _
from pydantic import TypeAdapter, ValidationError

LARGEST_ANSWER = 1024 * 1024
SHOWN = 500  # characters of an answer that nobody could read, kept as evidence


class NoAnswer(Exception):
    """There is no answer that could be read. The text says why, `evidence` is what came instead."""

    def __init__(self, detail: str, evidence: Any = None) -> None:
        """Keep what is known."""
        super().__init__(detail)
        self.evidence = evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What to ask. `timeout` limits connecting, sending and reading together."""

    method: str
    path: str
    timeout: timedelta
    body: Mapping[str, Any] | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole answer, not looked into yet."""

    status: int
    headers: httpx.Headers
    body: bytes

    @property
    def ok(self) -> bool:
        """Whether the service says that it did what it was asked."""
        return self.status in (HTTPStatus.OK, HTTPStatus.CREATED)

    def read[T](self, shape: type[T]) -> tuple[T, Any]:
        """The answer as that shape, and as plain JSON values. Raises NoAnswer."""
        content_type = self.headers.get("Content-Type", "")
        if content_type.partition(";")[0].strip().lower() != "application/json":
            raise NoAnswer(_("The service answered something that is not JSON."), self.evidence())
        try:
            value = json.loads(self.body, parse_constant=_no_constant)
            return TypeAdapter(shape).validate_json(self.body, strict=True), _storable(value)
        except (ValidationError, ValueError, RecursionError) as error:
            raise NoAnswer(_("The service's answer is incomplete or malformed."), self.evidence()) from error

    def account(self) -> str:
        """The account that the service answered for: an empty list would not say. Raises NoAnswer."""
        account = str(self.headers.get("Account", ""))
        if not account:
            raise NoAnswer(_("The service does not say which account it answered for."), self.evidence())
        return account

    def evidence(self) -> dict[str, Any]:
        """What can be kept of it whatever it is."""
        text = self.body.decode("utf-8", "replace").replace("\0", "\ufffd")
        content_type = self.headers.get("Content-Type", "")
        return {"status": self.status, "content_type": content_type, "text": text[:SHOWN]}


def service_url() -> str:
    """Where the service is, from the environment."""
    return os.environ.get("REFUNDS_SERVICE_URL", "http://127.0.0.1:8100")


def exchange(ask: Ask) -> Reply:
    """Ask and wait for the whole answer. Raises NoAnswer; something may have been executed all the same."""
    try:
        return _run(ask)
    except TimeoutError as error:
        seconds = {"seconds": ask.timeout.total_seconds()}
        raise NoAnswer(_("No whole answer within %(seconds)g seconds.") % seconds) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NoAnswer(_("No answer (%(error)s).") % {"error": type(error).__name__}) from error


def _run(ask: Ask) -> Reply:
    """Here where no event loop runs; where one does, in a thread of its own, since loops do not nest."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_exchange(ask))
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(lambda: asyncio.run(_exchange(ask))).result()


async def _exchange(ask: Ask) -> Reply:
    # httpx limits each read, not the whole: a service that drips would be waited for without end.
    async with (
        asyncio.timeout(ask.timeout.total_seconds()),
        _client() as client,
        client.stream(
            ask.method, ask.path, json=ask.body, params=ask.params or None, headers=ask.headers
        ) as response,
    ):
        body = await _body(response)
    return Reply(status=response.status_code, headers=response.headers, body=body)


def _client() -> httpx.AsyncClient:
    # The service is reached directly whatever proxies the machine is told to use.
    return httpx.AsyncClient(
        base_url=service_url(),
        verify=_certificates(),
        trust_env=False,
        timeout=None,
        headers={"Accept": "application/json", "Accept-Encoding": "identity"},
    )


async def _body(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise NoAnswer(_("The service's answer is larger than a megabyte."))
    return bytes(body)


@cache
def _certificates() -> ssl.SSLContext:
    return ssl.create_default_context()


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _storable(value: Any) -> Any:
    # PostgreSQL takes no NUL in text: what holds one is as unreadable as half an answer.
    if "\\u0000" in json.dumps(value):
        raise ValueError("NUL in a text")
    return value
