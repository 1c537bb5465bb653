"""The file of a checkpoint: the run's document with its digest, those of the runs that it started, and kept bytes.

It is written from the log, and read with everything in it verified. Nothing of an installation is in it: no key, no
password, no session, no address.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from runs import artifacts
from runs.ledger import SCHEMA_VERSION, RunMissing, log
from runs.machine import checkpoint, checkpointing
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import Uncanonical, canonical, parse
from runs.machine.checkpoint import CheckpointRefused
from runs.machine.evolve import REDUCER_VERSION, reduce
from runs.machine.references import content_hash
from runs.models import Event


class File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands in the file. `artifacts`: content hash -> the bytes in base64; of the outermost run's file only."""

    checkpoint: Raw
    digest: str
    started: tuple[File, ...] = ()
    artifacts: dict[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class Written:
    """A file, and the artifacts that are named in it and could not be read, each with why."""

    text: str
    left_out: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Verified:
    """One run of a file: its document's text, digest and state."""

    text: str
    digest: str
    document: Any
    state: s.RunState = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", checkpoint.restored(self.document))

    @property
    def event(self) -> dict[str, Any]:
        """What the first event says of it, but for who takes it in and where."""
        known = self.document
        return {
            "run": known.run, "seq": known.seq, "head": known.head, "digest": self.digest,
            "checkpoint": e.raw(self.text),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A whole file that was verified: the run first, then those that it started; and the bytes that came along."""

    runs: tuple[Verified, ...]
    artifacts: dict[str, bytes]


def write(run_id: str, *, until: int | None = None) -> Written:
    """The file of a run as of its latest event, or of event `until`. Raises RunMissing, ledger.LogUnreadable."""
    file, states = _file(run_id, until)
    kept, left_out = {}, []
    for tenant, hash_ in dict.fromkeys(_hashes(states)):
        try:
            kept[hash_] = base64.b64encode(artifacts.get(tenant, hash_)).decode()
        except artifacts.ArtifactUnreadable as error:
            left_out.append(str(error))
    whole = msgspec.structs.replace(file, artifacts=kept)
    return Written(
        text=canonical(parse(msgspec.json.encode(whole).decode())) + "\n", left_out=tuple(left_out)
    )


def _hashes(states: Iterable[s.RunState]) -> Iterator[tuple[str, str]]:
    for state in states:
        yield from ((state.identity.tenant, x.hash) for x in state.artifacts.values())


def _file(run_id: str, until: int | None = None) -> tuple[File, list[s.RunState]]:
    recorded = tuple(log(run_id, until=until))
    if not recorded:
        raise RunMissing(run_id)
    state = reduce(recorded)
    started = [_file(child.run) for child in state.children.values()]
    head = Event.objects.filter(run_id=run_id, seq=state.seq).values_list("hash", flat=True).get()
    document = checkpointing.document(
        state, head=bytes(head).hex(), schema=SCHEMA_VERSION, evidence=evidence_of(recorded),
        started={states[0].identity.run: file.digest for file, states in started},
    )  # fmt: skip
    text = checkpoint.text_of(document)
    file = File(
        checkpoint=e.raw(text), digest=checkpoint.digest_of(text), started=tuple(x for x, _ in started)
    )
    return file, [state, *(x for _, states in started for x in states)]


def evidence_of(recorded: Iterable[e.Recorded]) -> dict[int, Raw]:
    """What came with each receipt, by the seq of the event that made it certain."""
    found: dict[int, Raw] = {}
    answers: dict[int, Raw] = {}
    for one in recorded:
        match one.event:
            case e.ReceiptStored(evidence=evidence):
                found[one.seq] = evidence
            case e.EffectQueried(evidence=evidence):
                answers[one.seq] = evidence
            case e.EffectReconciled(asked=asked) if asked in answers:
                found[one.seq] = answers[asked]
            case e.RunTakenIn(checkpoint=text):
                results = checkpoint.read(e.text_of(text)).actions.results.values()
                found |= {x.seq: x.value for x in results if x.effect is not None}
    return found


def read(data: bytes) -> Taken:
    """The file with everything in it verified. Raises CheckpointRefused, which says what is wrong."""
    try:
        file = msgspec.json.decode(data, type=File)
    except msgspec.MsgspecError as error:
        raise CheckpointRefused(f"It is not the file of a checkpoint: {error}") from error
    return Taken(runs=tuple(_verified(file)), artifacts=dict(_bytes(file)))


def _verified(file: File) -> Iterator[Verified]:
    try:
        text = canonical(parse(e.text_of(file.checkpoint)))
    except (Uncanonical, ValueError) as error:
        raise CheckpointRefused(f"It is not a checkpoint: {error}") from error
    document = checkpoint.read(text)
    found = checkpoint.digest_of(text)
    if found != file.digest:
        raise CheckpointRefused(
            f"{document.run}: its digest is {found}, and it was written with {file.digest}. Something in it was "
            "changed since then. Take in the file as it was written."
        )
    _readable(document)
    yield Verified(text=text, digest=found, document=document)
    _same_runs(document, file)
    for child in file.started:
        yield from _verified(child)


def _readable(document: Any) -> None:
    """Whether this version can go on with what the run's state means."""
    known = document.versions
    if known.schema != SCHEMA_VERSION or known.reducer > REDUCER_VERSION:
        raise CheckpointRefused(
            f"{document.run}: it is of schema {known.schema} and reducer {known.reducer}, and this version has schema "
            f"{SCHEMA_VERSION} and reducer {REDUCER_VERSION}. Take it in with the version that wrote it."
        )


def _same_runs(document: Any, file: File) -> None:
    if sorted(document.actions.started.values()) != sorted(x.digest for x in file.started):
        raise CheckpointRefused(
            f"{document.run}: the checkpoints of the runs that it started are not those that it was written with."
        )


def _bytes(file: File) -> Iterator[tuple[str, bytes]]:
    for hash_, text in file.artifacts.items():
        try:
            data = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise CheckpointRefused(f"The artifact {hash_} is not readable: {error}") from error
        if content_hash(data) != hash_:
            raise CheckpointRefused(f"The artifact {hash_} has other bytes than those that were kept.")
        yield hash_, data
