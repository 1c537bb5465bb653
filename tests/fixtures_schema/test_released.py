"""Every schema version that was ever released is read by today's code: its stored logs reduce to what they did then."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from runs.ledger import SCHEMA_VERSION
from runs.machine import events as e
from runs.machine import state as s
from runs.machine import upcast
from runs.machine.evolve import evolve

SENDER = e.Sender(host="h", boot="b", pid=1, started="1", uptime=timedelta(seconds=5))
RELEASED = sorted(Path(__file__).parent.glob("v*.jsonl"))


def stored(path: Path) -> dict[str, list[dict[str, Any]]]:
    logs: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        logs.setdefault(row["log"], []).append(row)
    return logs


def recorded(row: dict[str, Any]) -> e.Recorded:
    event = e.decode(seq=row["seq"], type_=row["type"], version=row["version"], body=row["body"])
    kind, id_, name = row["actor"]
    return e.Recorded(
        row["seq"], datetime.fromisoformat(row["at"]), e.Actor(e.ActorKind(kind), id_, name), event
    )


def test_there_is_a_fixture_of_every_released_version() -> None:
    """New types of events leave the version as it is: what was added later stands in a fixture v1.1 and so on."""
    assert {path.stem.partition(".")[0] for path in RELEASED} == {
        f"v{number}" for number in range(1, SCHEMA_VERSION + 1)
    }


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_its_logs_reduce_to_what_they_did_then(path: Path) -> None:
    logs = stored(path)
    del logs["samples"]
    assert len(logs) >= 10
    for name, rows in logs.items():
        state: s.RunState | None = None
        for row in rows:
            state = evolve(state, recorded(row))
            assert state.state.value == row["state_after"], (name, row["seq"])
        assert state is not None and state.state.value == name


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_every_type_it_knew_is_read(path: Path) -> None:
    rows = stored(path)["samples"]
    assert [type(recorded(row).event).__name__ for row in rows] == [row["type"] for row in rows]


@pytest.fixture
def second_version(monkeypatch: pytest.MonkeyPatch) -> str:
    """EffectSent is at version 2: version 1 called its number `number`. Its body in version 1."""
    versions: dict[Any, int] = e.VERSIONS
    monkeypatch.setitem(versions, e.EffectSent, 2)
    body = json.loads(e.encode(e.EffectSent(effect=7, sender=SENDER)))
    body["number"] = body.pop("effect")
    return json.dumps(body)


def test_an_old_version_has_a_way_to_the_present(
    second_version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def renamed(fields: upcast.Fields) -> upcast.Fields:
        return {"effect": fields.pop("number"), **fields}

    monkeypatch.setitem(upcast.UPCASTS, ("EffectSent", 1), renamed)

    read = e.decode(seq=3, type_="EffectSent", version=1, body=second_version)
    assert read == e.EffectSent(effect=7, sender=SENDER)
    assert upcast.missing({"EffectSent": 2}) == []


def test_without_a_way_it_is_refused_with_its_seq(second_version: str) -> None:
    with pytest.raises(e.UnknownEvent, match="event 3 is EffectSent version 1") as refused:
        e.decode(seq=3, type_="EffectSent", version=1, body=second_version)
    assert refused.value.seq == 3
    assert upcast.missing({"EffectSent": 2}) == [("EffectSent", 1)]


def test_a_version_that_is_refused_says_why(second_version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(upcast.REFUSED, ("EffectSent", 1), "which never left the laboratory")
    with pytest.raises(e.UnknownEvent, match="which never left the laboratory"):
        e.decode(seq=3, type_="EffectSent", version=1, body=second_version)
    assert upcast.missing({"EffectSent": 2}) == []


def test_what_came_from_outside_stays_to_the_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(upcast.UPCASTS, ("Any", 1), lambda fields: {**fields, "more": Raw(b"1")})
    body = '{"evidence":{"b": 1.0,  "a":[1e2]}}'
    assert upcast.upcast(body, type_="Any", version=1, to=2) == '{"evidence":{"b": 1.0,  "a":[1e2]},"more":1}'
