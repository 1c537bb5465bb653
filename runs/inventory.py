"""What stands in the storage against what the tables and the events say: what is lost, and what nobody points to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.core.files.storage import Storage

from runs import artifacts
from runs.machine import events as e
from runs.models import Artifact, Event, Summary

#: A younger file may be one whose row is being written.
OLDEST_BEGUN: Final = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a look through everything gave. `lost` are sentences; each is about bytes that some run still names."""

    artifacts: int
    lost: tuple[str, ...]
    summaries: int
    to_make_again: int  #: summaries that cannot be read
    orphans: tuple[str, ...]


def look() -> Found:
    """Read every file and compare its hash. Changes nothing."""
    lost = [*_unreadable(), *_without_row()]
    unread = sum(not _reads(row) for row in Summary.objects.iterator())
    return Found(
        artifacts=Artifact.objects.count(), lost=tuple(lost), summaries=Summary.objects.count(),
        to_make_again=unread, orphans=tuple(orphans()),
    )  # fmt: skip


def _unreadable() -> Iterator[str]:
    for row in Artifact.objects.order_by("pk").iterator():
        try:
            artifacts.read(row.location, row.hash)
        except artifacts.ArtifactUnreadable as error:
            yield f"{error} (tenant {row.tenant_id}, file {row.location})"


def _without_row() -> Iterator[str]:
    """Artifacts that an event names and no row has. An event whose body was erased names none."""
    known = set(Artifact.objects.values_list("tenant_id", "hash"))
    tied = Event.objects.filter(type=e.ArtifactKept.__name__, body__isnull=False).order_by("run_id", "seq")
    for event in tied.iterator():
        body = e.decode(seq=event.seq, type_=event.type, version=event.version, body=event.body or "")
        if isinstance(body, e.ArtifactKept) and (event.tenant_id, body.artifact) not in known:
            yield f"The artifact {body.artifact} of {event.run_id}, event {event.seq}, was never kept here."


def _reads(row: Summary) -> bool:
    try:
        artifacts.read(row.location, row.hash)
    except artifacts.ArtifactUnreadable:
        return False
    return True


def orphans() -> list[str]:
    """The files that no row points to."""
    # The rows are read after the files: a file that is pointed to by then is left out.
    files = list(_files(artifacts.storage(), ""))
    pointed = {*Artifact.objects.values_list("location", flat=True)}
    pointed |= {*Summary.objects.values_list("location", flat=True)}
    return [file for file in files if file not in pointed]


def _files(storage: Storage, folder: str) -> Iterator[str]:
    try:
        folders, files = storage.listdir(folder)
    except FileNotFoundError:
        return
    prefix = f"{folder}/" if folder else ""
    yield from (f"{prefix}{name}" for name in files)
    for name in folders:
        yield from _files(storage, f"{prefix}{name}")


def sweep(now: datetime) -> list[str]:
    """Remove the files that no row points to and that are older than a day; which."""
    storage = artifacts.storage()
    old = [file for file in orphans() if storage.get_modified_time(file) < now - OLDEST_BEGUN]
    for file in old:
        storage.delete(file)
    return old
