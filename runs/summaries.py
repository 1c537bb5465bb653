"""Summaries: a run's older events in few words, kept as artifacts of which none is ever missed.

One that is not there, or cannot be read as it was kept, is made again from the same events. No event says that there is
one, so nothing that a run means can depend on it.
"""

from __future__ import annotations

import logging
from typing import Final

from django.db import transaction
from django.db.models import QuerySet

from runs import artifacts, crash
from runs.agents import Agent, Summariser
from runs.clock import database_now
from runs.history import CONDENSED, History, entries
from runs.ledger import log as events_of
from runs.machine import state as s
from runs.machine.canonical import plain
from runs.machine.references import content_hash
from runs.models import Summary

log = logging.getLogger(__name__)

EVERY: Final = 50  #: events; those since the latest multiple are told one by one
LARGEST: Final = 16 * 1024  #: bytes
FOLDER: Final = "summaries"


def history_of(state: s.RunState, agent: Agent) -> History:
    """The run's history as of its state. Raises ledger.LogUnreadable."""
    upto = state.seq // EVERY * EVERY
    summary = _summary(state, agent.summariser or CONDENSED, upto) if upto else ""
    since = entries(events_of(state.identity.run, after=upto, until=state.seq))
    return History(upto=upto, summary=summary, since=tuple(since))


def _summary(state: s.RunState, by: Summariser, upto: int) -> str:
    known = _kept(state.identity.run, by.version, upto)
    if known is not None:
        return known
    found = entries(events_of(state.identity.run, until=upto))
    if not found:
        return ""  # these events are not here: the run was taken in from its checkpoint
    try:
        text = _within(plain(by.summarise(found, limit=LARGEST)))
    except Exception:
        # A summariser is foreign code or a model; its words are a convenience.
        log.exception("the summariser failed; code condenses", extra={"run": state.identity.run})
        return CONDENSED.summarise(found, limit=LARGEST)
    _keep(state, by.version, upto, text)
    return text


def _within(text: str) -> str:
    data = text.encode()
    return text if len(data) <= LARGEST else data[:LARGEST].decode(errors="ignore")


def _kept(run_id: str, version: str, upto: int) -> str | None:
    row = Summary.objects.filter(run_id=run_id, summariser=version, upto=upto).first()
    if row is None:
        return None
    try:
        return artifacts.read(row.location, row.hash).decode()
    except artifacts.ArtifactUnreadable:
        log.warning("a summary is made again, since it cannot be read", extra={"run": run_id})
        return None


def _keep(state: s.RunState, version: str, upto: int, text: str) -> None:
    """Keep it for the next time, in the place of earlier ones. Where that fails it is made again."""
    run, tenant = state.identity.run, state.identity.tenant
    try:
        crash.reach(run, crash.SUMMARY_MADE)
        location = artifacts.written(f"{tenant}/{FOLDER}", text.encode())
        crash.reach(run, crash.SUMMARY_WRITTEN)
        Summary.objects.update_or_create(
            run_id=run, summariser=version, upto=upto,
            defaults={
                "tenant_id": tenant, "hash": content_hash(text.encode()), "location": location,
                "made_at": database_now(),
            },
        )  # fmt: skip
        crash.reach(run, crash.SUMMARY_KEPT)
        drop(Summary.objects.filter(run_id=run, summariser=version, upto__lt=upto))
    except Exception:
        log.exception("the summary could not be kept; it is made again the next time", extra={"run": run})


def drop(summaries: QuerySet[Summary]) -> int:
    """Forget summaries, rows first; how many. A file that stays behind is an orphan, and is swept."""
    with transaction.atomic():
        found = list(summaries.select_for_update())
        Summary.objects.filter(pk__in=[row.pk for row in found]).delete()
    for row in found:
        try:
            artifacts.storage().delete(row.location)
        except Exception:
            log.exception("the file of a dropped summary stays behind", extra={"run": row.run_id})
    return len(found)
