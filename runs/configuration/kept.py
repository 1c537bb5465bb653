"""What a configured document said when it was last heard, and until when that counts.

One row for each source, whoever asks. An answer counts from its commit on, for every run that accepted something of the
document: a send asks the row in its own transaction, and another document waits for sends that did so already. The
answer of a question that began earlier never takes the place of a later one's.
"""

from __future__ import annotations

import hashlib
import logging
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection

from runs.agents import Agent, Configuration, configurations, registered
from runs.clock import database_now
from runs.configuration.document import Document, DocumentRefused, read
from runs.configuration.outside import NoAnswer, fetch
from runs.machine.canonical import plain
from runs.models import ConfigurationKept

log = logging.getLogger(__name__)

#: How long an answer is taken for what the source says now. A file is always looked into.
FRESH: Final = timedelta(seconds=5)
_HEARD = """
INSERT INTO runs_configurationkept (ref, etag, version, document, digest, asked_at, good_until, tried_at, failure)
VALUES (%(ref)s, %(etag)s, %(version)s, %(document)s, %(digest)s, %(began)s, %(until)s, %(began)s, '')
ON CONFLICT (ref) DO UPDATE SET etag = excluded.etag, version = excluded.version, document = excluded.document,
    digest = excluded.digest, asked_at = excluded.asked_at, good_until = excluded.good_until,
    tried_at = excluded.tried_at, failure = ''
WHERE runs_configurationkept.tried_at <= excluded.tried_at
"""
_SAME = """
UPDATE runs_configurationkept SET asked_at = %(began)s, good_until = %(until)s, tried_at = %(began)s, failure = ''
WHERE ref = %(ref)s AND digest = %(digest)s AND tried_at <= %(began)s
"""
_FAILED = """
INSERT INTO runs_configurationkept (ref, etag, version, document, digest, tried_at, failure)
VALUES (%(ref)s, '', '', '', '', %(began)s, %(failure)s)
ON CONFLICT (ref) DO UPDATE SET tried_at = excluded.tried_at, failure = excluded.failure
WHERE runs_configurationkept.tried_at <= excluded.tried_at
"""


def last(ref: str) -> ConfigurationKept | None:
    """What was last heard of a source; None where it was never asked."""
    return ConfigurationKept.objects.filter(ref=ref).first()


def document_of(row: ConfigurationKept) -> Document:
    """What it said. Raises DocumentRefused where this code cannot read it any more."""
    return read(row.document.encode())


def ask_all(agent: Agent) -> None:
    """Ask every document that the agent's constraints come from. Outside every transaction; raises nothing."""
    for configuration in configurations(agent):
        ask(configuration)


def ask_due() -> None:
    """Ask every document that any agent here names, so that a change is heard also where no run asks."""
    named = [x for agent in registered().values() for x in configurations(agent)]
    for configuration in {x.ref: x for x in named}.values():
        ask(configuration)


def ask(configuration: Configuration) -> None:
    """Ask the source, unless it was asked a moment ago, and keep what it says or why it could not be asked."""
    known = last(configuration.ref)
    began = database_now()
    if known and configuration.url and began - known.tried_at < FRESH:
        return
    try:
        answer = fetch(
            configuration, etag=known.etag if known else "", timeout=settings.HANDOFF_DURATIONS.tool_timeout
        )
        data = answer.data if answer.data is not None else known.document.encode() if known else b""
        read(data)
    except (NoAnswer, DocumentRefused) as error:
        _failed(configuration, known, plain(str(error)), began)
        return
    _heard(configuration, known, data, answer.etag, began)


def _failed(
    configuration: Configuration, known: ConfigurationKept | None, failure: str, began: datetime
) -> None:
    if known is None or known.failure != failure:  # said once, however often it is asked
        log.warning(
            "a source of constraints could not be asked", extra={"source": configuration.ref, "why": failure}
        )
    _write(_FAILED, ref=configuration.ref, began=began, failure=failure)


def _heard(
    configuration: Configuration, known: ConfigurationKept | None, data: bytes, etag: str, began: datetime
) -> None:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    facts = {
        "ref": configuration.ref,
        "digest": digest,
        "began": began,
        "until": began + _half_life(configuration),
    }
    same = known is not None and known.digest == digest and known.etag == etag
    if known and same and not known.failure and known.asked_at and began - known.asked_at < FRESH:
        return  # a file, looked into a moment ago
    if same:
        _write(_SAME, **facts)
    else:
        _write(_HEARD, **facts, etag=etag, version=etag or digest, document=data.decode())


def _half_life(configuration: Configuration) -> timedelta:
    stands: timedelta = settings.HANDOFF_DURATIONS.configuration_stands
    return configuration.half_life or stands


def _write(sql: str, **facts: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, facts)
