"""Bodies of events: what is written is what is read, and what this build does not know is refused by its seq."""

from __future__ import annotations

import msgspec
import pytest

from runs.machine import events as e
from tests.machine.samples import SAMPLES


def test_there_is_a_sample_of_every_type() -> None:
    assert set(SAMPLES) == set(e.ALL)


@pytest.mark.parametrize("event", SAMPLES.values(), ids=[cls.__name__ for cls in SAMPLES])
def test_an_event_survives_being_written_and_read(event: e.Event) -> None:
    body = e.encode(event)
    read = e.decode(seq=1, type_=type(event).__name__, version=1, body=body)
    assert type(read) is type(event)
    assert e.encode(read) == body


def test_outside_json_is_kept_to_the_letter() -> None:
    text = '{"b": 1.0,  "a":[1e2]}'
    event = e.EvidenceKept(
        effect=1, executed=None, reference="", evidence=e.raw(text), source="call", contradicts=False
    )
    read = e.decode(seq=1, type_="EvidenceKept", version=1, body=e.encode(event))
    assert isinstance(read, e.EvidenceKept)
    assert e.text_of(read.evidence) == text


@pytest.mark.parametrize(("type_", "version"), [("Foretold", 1), ("RunStarted", 2), ("RunStarted", 0)])
def test_an_unknown_type_or_version_is_refused_with_its_seq(type_: str, version: int) -> None:
    with pytest.raises(e.UnknownEvent) as refused:
        e.decode(seq=17, type_=type_, version=version, body="{}")
    assert (refused.value.seq, refused.value.type, refused.value.version) == (17, type_, version)


@pytest.mark.parametrize("body", ['{"effect":"one"}', '{"effect":1,"surprise":2}', "{", "null"])
def test_a_damaged_body_is_never_read_as_something_else(body: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        e.decode(seq=1, type_="EffectSent", version=1, body=body)
