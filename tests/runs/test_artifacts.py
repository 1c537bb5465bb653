"""Artifacts: bytes by content hash, one tenant's never another's, and no crash or outage that loses what came back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import InMemoryStorage, storages
from django.db import connection

from accounts.models import Tenant
from runs import artifacts
from runs.ledger import load, log
from runs.machine import events as e
from runs.machine import references
from runs.machine.canonical import ESCAPED, canonical
from runs.machine.state import RunState, State
from runs.models import Artifact, Run
from runs.tools import Ambiguous, Call, Found, Match, Reading
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, advance
from tests.runs.scripted import LOOK, Script, executed, pay, plan

LONG = {"log": "z" * 70_000}


class Outage(Exception):
    """The storage is away, as any storage may be."""


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Outage("no route to the storage")

    monkeypatch.setattr(type(artifacts.storage()), "_save", refuse)


def keep(house: House, data: bytes = b"bytes") -> Artifact:
    return artifacts.put(tenant_id=house.tenant.pk, data=data, media_type="text/plain")


def file_of(row: Artifact) -> Path:
    return Path(artifacts.storage().path(row.location))


def files() -> set[str]:
    root = Path(artifacts.storage().path(""))
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_the_same_bytes_are_kept_once_in_a_tenant(house: House) -> None:
    first = keep(house)
    before = files()
    assert keep(house).pk == first.pk
    assert files() == before
    assert artifacts.get(house.tenant.pk, first.hash) == b"bytes"
    assert (first.hash, first.size) == (references.content_hash(b"bytes"), 5)


def test_another_tenants_artifact_is_as_if_it_had_never_been(house: House) -> None:
    row, other = keep(house), Tenant.objects.get(slug="other")
    with pytest.raises(artifacts.ArtifactMissing, match="nothing of that hash was ever kept here"):
        artifacts.get(other.pk, row.hash)
    theirs = artifacts.put(tenant_id=other.pk, data=b"bytes", media_type="text/plain")
    file_of(row).unlink()
    assert artifacts.get(other.pk, theirs.hash) == b"bytes"


def test_a_file_that_is_gone_or_changed_is_never_returned_and_can_be_kept_again(house: House) -> None:
    row = keep(house)
    file_of(row).write_bytes(b"other")
    with pytest.raises(artifacts.ArtifactDamaged, match=r"were not used\. Put it back"):
        artifacts.get(house.tenant.pk, row.hash)
    file_of(row).unlink()
    with pytest.raises(artifacts.ArtifactMissing, match=r"is gone\. Nothing was changed\. Put it back"):
        artifacts.get(house.tenant.pk, row.hash)

    assert keep(house).pk == row.pk
    assert artifacts.get(house.tenant.pk, row.hash) == b"bytes"


def test_files_are_for_this_user_alone(house: House) -> None:
    path = file_of(keep(house))
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_crash_while_keeping_leaves_at_most_a_file(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies after the file and before its row, then in the middle of the file."""
    monkeypatch.setattr(artifacts, "database_now", _dies)
    with pytest.raises(Outage):
        keep(house)
    assert not Artifact.objects.exists()
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", _dies)
    with pytest.raises(artifacts.ArtifactNotKept, match=r"Outage.*Nothing was kept\. Try again later"):
        keep(house)
    monkeypatch.undo()
    assert not Artifact.objects.exists()
    assert artifacts.get(house.tenant.pk, keep(house).hash) == b"bytes"


def _dies(*_: Any) -> Any:
    raise Outage


def test_more_than_an_artifact_may_have_is_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "LARGEST_ARTIFACT", 4)
    with pytest.raises(artifacts.ArtifactTooLarge, match=r"5 bytes are more than the 4 .* Nothing was kept"):
        keep(house)
    assert not Artifact.objects.exists()


def test_any_storage_of_django_will_do(house: House, settings: Any) -> None:
    settings.STORAGES = {
        **settings.STORAGES, "artifacts": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    }  # fmt: skip
    assert isinstance(storages["artifacts"], InMemoryStorage)
    row = keep(house)
    assert artifacts.get(house.tenant.pk, row.hash) == b"bytes"
    artifacts.storage().delete(row.location)
    with pytest.raises(artifacts.ArtifactMissing):
        artifacts.get(house.tenant.pk, row.hash)


def receipt(run: Run) -> e.ReceiptStored:
    return next(x.event for x in log(run.pk) if isinstance(x.event, e.ReceiptStored))


def ties(run: Run) -> list[e.ArtifactKept]:
    return [x.event for x in log(run.pk) if isinstance(x.event, e.ArtifactKept)]


def test_long_evidence_is_an_artifact_and_the_receipt_refers_to_it(
    house: House, script: Script, world: World
) -> None:
    script.answer = executed(LONG)
    run = house.start()
    state = advance(run)

    stands = references.referred(e.text_of(receipt(run).evidence))
    assert stands is not None and stands.head == canonical(LONG)[: references.HEAD]
    assert artifacts.text_of(house.tenant.pk, e.text_of(receipt(run).evidence)) == canonical(LONG)
    (tied,) = ties(run)
    assert (tied.artifact, tied.size, tied.about) == (stands.hash, stands.size, "E-1")
    assert [a.hash for a in state.artifacts.values()] == [stands.hash]
    assert (state.state, world.times("pay:7")) == (State.SUCCEEDED, 1)


def test_fifty_megabytes_are_kept_and_cause_no_second_send(
    house: House, script: Script, world: World
) -> None:
    much = {"log": "z" * 50_000_000}
    script.answer = executed(much)
    run = house.start()
    assert advance(run).state is State.SUCCEEDED
    assert artifacts.text_of(house.tenant.pk, e.text_of(receipt(run).evidence)) == canonical(much)
    assert world.calls == ["pay:7"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(length(body)) FROM runs_event WHERE run_id = %s", [run.pk])
        assert cursor.fetchone()[0] < 64 * 1024


def test_where_the_storage_is_away_the_receipt_holds_it_all(
    house: House, script: Script, world: World, away: None
) -> None:
    script.answer = executed(LONG)
    run = house.start()
    assert advance(run).state is State.SUCCEEDED
    assert e.text_of(receipt(run).evidence) == canonical(LONG)
    assert (ties(run), world.times("pay:7")) == ([], 1)


def test_where_the_database_ends_while_keeping_the_receipt_is_stored_all_the_same(
    house: House, script: Script, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = artifacts.written

    def ends(*args: Any) -> str:
        monkeypatch.setattr(artifacts, "written", real)
        connection.cursor().execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return real(*args)

    monkeypatch.setattr(artifacts, "written", ends)
    script.answer = executed(LONG)
    run = house.start()
    assert advance(run).state is State.SUCCEEDED
    assert e.text_of(receipt(run).evidence) == canonical(LONG)
    assert world.calls == ["pay:7"]


def test_evidence_that_pretends_to_stand_for_another_is_never_taken_for_it(
    house: House, script: Script, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = keep(house, b'{"secret":1}')
    lie = {references.KEPT: {"hash": secret.hash, "size": 12, "head": ""}}
    script.answer = executed(lie)
    script.proposals = [plan(pay())]
    run = house.start()
    advance(run)
    assert artifacts.text_of(house.tenant.pk, e.text_of(receipt(run).evidence)) == canonical(lie)

    monkeypatch.setattr(artifacts, "put", _dies)
    text, tied = artifacts.shortened(house.tenant.pk, canonical(lie), name="n", kind="evidence", about="")
    assert tied is None and text == canonical({ESCAPED: canonical(lie)})


def test_long_answers_of_a_query_are_artifacts_too(
    house: House, script: Script, world: World, clock: Clock
) -> None:
    script.answer = lambda call: Ambiguous(detail="lost", evidence=LONG)
    script.found = _found
    run = house.start()
    state = advance(run)
    while state.state is State.UNKNOWN:
        clock.move(timedelta(seconds=5))
        state = advance(run)
    assert (state.state, world.calls) == (State.SUCCEEDED, ["pay:7"])
    assert len(ties(run)) == 2  # the call's and the query's; the receipt from the query has the query's


def _found(call: Call) -> Found:
    shown = Match(
        reference="r", operation_id=call.operation_id, key=call.key, account="acct", final=True,
        arguments=dict(call.arguments),
    )  # fmt: skip
    return Found(matches=(shown,), account="acct", evidence=["y" * 70_000])


def _reading(value: Any) -> Reading:
    return Reading(value=value, resource="order:7", version="v1")


@pytest.fixture
def looks(script: Script) -> Iterator[Script]:
    """The planner reads the order, then pays resting on it."""
    script.proposals = [lambda view: LOOK, plan(pay(rests_on=(LOOK,)))]
    yield script


def observed(state: RunState) -> str:
    return next(iter(state.observations.values())).value


def test_a_long_value_is_an_artifact_and_compared_by_its_content(
    house: House, looks: Script, world: World
) -> None:
    looks.reading = lambda: _reading(LONG)
    run = house.start()
    state = advance(run)
    assert state.state is State.SUCCEEDED
    assert references.referred(observed(state)) is not None
    assert len(ties(run)) == 1  # read twice, for the plan and before the send, and kept once


def test_a_long_value_that_changed_is_seen_to_have_changed(house: House, looks: Script, world: World) -> None:
    looks.needed = 1
    looks.reading = lambda: _reading(LONG)
    run = house.waiting()
    house.decide(run, house.approver)
    looks.reading = lambda: _reading({"log": "z" * 70_000 + "!"})
    state = advance(run)
    assert any(plan.voided for plan in state.plans)
    assert world.calls == []


def test_a_value_is_the_same_whether_it_stands_in_the_event_or_in_the_storage(
    house: House, looks: Script, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks.needed = 1
    looks.reading = lambda: _reading(LONG)
    run = house.waiting()
    house.decide(run, house.approver)
    monkeypatch.setattr(artifacts, "put", _dies)
    assert advance(run).state is State.SUCCEEDED
    assert references.referred(observed(load(run.pk))) is None
