"""Fetching a document of constraints: a file, or an address that is asked with the ETag it gave before.

The whole exchange has one limit of time and the answer one of size. Redirects are not followed: the address that was
configured is the one that speaks.
"""

from __future__ import annotations

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

import httpx
from django.utils.translation import gettext as _

from runs.agents import Configuration
from runs.machine.canonical import plain

LARGEST: Final = 256 * 1024  #: bytes
LONGEST_ETAG: Final = 100


class NoAnswer(Exception):
    """The source could not be asked, or gave nothing that can be used. The text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the source gave. `data` None: what was last heard is still so."""

    data: bytes | None
    etag: str = ""


def fetch(configuration: Configuration, *, etag: str, timeout: timedelta) -> Answer:
    """Ask the source. Raises NoAnswer. Never inside a transaction."""
    if configuration.path:
        return Answer(data=_file(Path(configuration.path)))
    try:
        return _run(configuration.url, etag, timeout)
    except TimeoutError:
        facts = {"seconds": timeout.total_seconds()}
        raise NoAnswer(_("No whole answer came within %(seconds)g seconds.") % facts) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise NoAnswer(_("No answer came (%(error)s).") % {"error": type(error).__name__}) from error


def _file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise NoAnswer(_("The file cannot be read (%(error)s).") % {"error": type(error).__name__}) from error
    if len(data) > LARGEST:
        raise NoAnswer(_too_large())
    return data


def _too_large() -> str:
    return _("The document is larger than %(most)d bytes.") % {"most": LARGEST}


def _run(url: str, etag: str, timeout: timedelta) -> Answer:
    """Here where no event loop runs; where one does, in a thread of its own, since loops do not nest."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_asked(url, etag, timeout))
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(lambda: asyncio.run(_asked(url, etag, timeout))).result()


async def _asked(url: str, etag: str, timeout: timedelta) -> Answer:
    # httpx limits each read, not the whole: a source that drips would be waited for without end.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    headers |= {"If-None-Match": etag} if etag else {}
    async with (
        asyncio.timeout(timeout.total_seconds()),
        httpx.AsyncClient(
            verify=_certificates(), timeout=None, follow_redirects=False, trust_env=False
        ) as client,
        client.stream("GET", url, headers=headers) as response,
    ):
        if response.status_code == HTTPStatus.NOT_MODIFIED and etag:
            return Answer(data=None, etag=etag)
        if response.status_code != HTTPStatus.OK:
            raise NoAnswer(_("It answered with status %(status)d.") % {"status": response.status_code})
        return Answer(data=await _body(response), etag=_etag(response))


def _etag(response: httpx.Response) -> str:
    etag = plain(str(response.headers.get("ETag", "")))
    return etag if etag.isascii() and len(etag) <= LONGEST_ETAG else ""


async def _body(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > LARGEST:
            raise NoAnswer(_too_large())
    return bytes(body)


@cache
def _certificates() -> ssl.SSLContext:
    return ssl.create_default_context()
