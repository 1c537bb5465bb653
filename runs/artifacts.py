"""Artifacts: bytes kept by content hash, behind Django's storage API (the alias `artifacts`).

The file is written first, under a name that no other has, then the row that points to it. So a crash leaves at most
a file that nothing points to, which `manage.py artifacts --sweep` removes, and never a row without bytes.

ArtifactUnreadable     nothing was returned; `hash` says what could not be read
  ArtifactMissing      there is no row, or no file
  ArtifactDamaged      the file's bytes are not those that were kept
ArtifactTooLarge       nothing was kept
ArtifactNotKept        the storage did not take it: nothing was kept
"""

from __future__ import annotations

import logging
import secrets
from uuid import UUID

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.db import transaction

from runs.clock import database_now
from runs.limits import LARGEST_ARTIFACT, LARGEST_INLINE
from runs.machine.canonical import ESCAPED, canonical
from runs.machine.events import ArtifactKept
from runs.machine.references import content_hash, reference, referred
from runs.machine.state import Effect
from runs.models import Artifact

log = logging.getLogger(__name__)

JSON = "application/json"


class ArtifactUnreadable(Exception):
    """What was kept cannot be read as it was kept; nothing was returned."""

    def __init__(self, hash_: str, why: str) -> None:
        self.hash = hash_
        super().__init__(f"The artifact {hash_} was not read: {why}")


class ArtifactMissing(ArtifactUnreadable):
    """There is no such artifact in this tenant, or its file is gone."""


class ArtifactDamaged(ArtifactUnreadable):
    """The file's bytes are not those that were kept."""


class ArtifactTooLarge(Exception):
    """More bytes than an artifact may have: nothing was kept."""

    def __init__(self, size: int, most: int) -> None:
        self.size, self.most = size, most
        super().__init__(f"{size} bytes are more than the {most} that may be kept. Nothing was kept.")


class ArtifactNotKept(Exception):
    """The storage did not take the bytes: nothing was kept."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"The storage did not take the bytes ({type(error).__name__}: {error}). Nothing was kept. Try again later."
        )


def storage() -> Storage:
    """Where the bytes stand."""
    return storages["artifacts"]


def put(*, tenant_id: UUID | str, data: bytes, media_type: str) -> Artifact:
    """Keep the bytes, once in a tenant however often they come. A file that was lost or damaged is replaced.

    Raises ArtifactTooLarge, ArtifactNotKept; then nothing is kept. Never called inside a transaction
    whose end could be long in coming.
    """
    if len(data) > LARGEST_ARTIFACT:
        raise ArtifactTooLarge(len(data), LARGEST_ARTIFACT)
    hash_ = content_hash(data)
    known = Artifact.objects.filter(tenant_id=tenant_id, hash=hash_).first()
    if known and _reads(known):
        return known
    location = written(f"{tenant_id}", data)
    with transaction.atomic():
        row, _ = Artifact.objects.update_or_create(
            tenant_id=tenant_id, hash=hash_, defaults={"location": location},
            create_defaults={
                "location": location, "size": len(data), "media_type": media_type[:100], "created_at": database_now(),
            },
        )  # fmt: skip
    return row


def _reads(row: Artifact) -> bool:
    try:
        read(row.location, row.hash)
    except ArtifactUnreadable:
        log.exception("an artifact is kept again, since its file cannot be read")
        return False
    return True


def get(tenant_id: UUID | str, hash_: str) -> bytes:
    """The bytes, verified. Raises ArtifactUnreadable: in another tenant it is as if they had never been."""
    row = Artifact.objects.filter(tenant_id=tenant_id, hash=hash_).first()
    if row is None:
        raise ArtifactMissing(hash_, "nothing of that hash was ever kept here.")
    return read(row.location, row.hash)


def written(folder: str, data: bytes) -> str:
    """Write a file that nothing points to yet; its name in the storage. Raises ArtifactNotKept."""
    hex_ = content_hash(data).partition(":")[2]
    try:
        return storage().save(f"{folder}/{hex_[:2]}/{hex_}-{secrets.token_hex(8)}", ContentFile(data))
    except Exception as error:
        raise ArtifactNotKept(error) from error


def read(location: str, hash_: str) -> bytes:
    """The file's bytes, verified against their hash. Raises ArtifactUnreadable."""
    try:
        with storage().open(location) as file:
            data: bytes = file.read()
    except FileNotFoundError as error:
        why = "its file is gone. Nothing was changed. Put it back from a copy, or keep the same bytes again."
        raise ArtifactMissing(hash_, why) from error
    except Exception as error:
        why = f"the storage did not answer ({type(error).__name__}: {error}). Nothing was changed. Try again later."
        raise ArtifactUnreadable(hash_, why) from error
    if content_hash(data) != hash_:
        why = "its file has other bytes. They were not used. Put it back from a copy, or keep the same bytes again."
        raise ArtifactDamaged(hash_, why)
    return data


def text_of(tenant_id: UUID | str, text: str) -> str:
    """A text out of an event, whole: read from the storage where it only refers to it. Raises ArtifactUnreadable."""
    stands = referred(text)
    return get(tenant_id, stands.hash).decode() if stands else text


def evidence_of(tenant_id: UUID | str, effect: Effect, text: str) -> tuple[str, ArtifactKept | None]:
    """As `shortened`, for what came back about an effect."""
    name = f"{effect.tool}-E-{effect.number}.json"
    return shortened(tenant_id, text, name=name, kind="evidence", about=f"E-{effect.number}")


def shortened(
    tenant_id: UUID | str, text: str, *, name: str, kind: str, about: str
) -> tuple[str, ArtifactKept | None]:
    """What an event holds of a canonical text that came from outside, and the event that ties the whole of it.

    A short text is held as it is. So is a long one that cannot be kept, for whatever reason: nothing that came back is
    ever lost to a storage that is away. A text that only pretends to stand for another is never held as it is.
    """
    pretends = referred(text) is not None
    data = text.encode()
    if len(data) <= LARGEST_INLINE and not pretends:
        return text, None
    try:
        row = put(tenant_id=tenant_id, data=data, media_type=JSON)
    except Exception:
        log.exception("a long text stands in its event, since it could not be kept as an artifact")
        return (canonical({ESCAPED: text}) if pretends else text), None
    kept = ArtifactKept(artifact=row.hash, name=name, kind=kind, media_type=JSON, size=row.size, about=about)
    return reference(text), kept
