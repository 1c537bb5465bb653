"""The file of a checkpoint: what is in it, what is not, and what is refused on the way in."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command

from accounts.models import User
from runs import actions, artifacts, checkpoints, replay
from runs.ledger import chain_problem, load, log
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical
from runs.machine.checkpoint import GROUPS, CheckpointRefused, digest_of
from runs.models import Event, Run
from tests.checkpoint.lives import empty
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import PASSWORD, House, advance, assert_replays


@pytest.fixture
def half(house: House, world: World) -> Run:
    """A run whose payment is certain and whose second effect is in doubt."""
    run = house.approved()
    world.answers = ["", "silent"]
    world.outage = "closed"
    advance(run)
    return run


def written(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(checkpoints.write(run.pk).text)
    return found


def test_all_six_groups_and_what_may_still_come_are_in_it(house: House, half: Run) -> None:
    file = written(half)
    document, state = file["checkpoint"], load(half.pk)
    assert {*GROUPS, "versions"} <= document.keys()
    assert file["digest"] == digest_of(canonical(document))
    head = Event.objects.get(run=half, seq=state.seq).hash
    assert (document["seq"], document["head"]) == (state.seq, bytes(head).hex())

    actions_ = document["actions"]
    by_key = {state.effects[1].key: "done"}
    assert by_key.items() <= {k: v["outcome"] for k, v in actions_["results"].items()}.items()
    assert actions_["results"][state.effects[1].key]["value"] == {"order": "2000", "amount": "250.00"}
    (reading,) = (x for x in actions_["results"].values() if x["outcome"] == "read")
    assert reading["value"] == {"order": "2000", "version": "v1"}
    assert [(x["key"], x["may"]) for x in actions_["open"]] == [(state.effects[2].key, "ask")]
    assert document["governance"]["authority"]["principal"] == str(house.operator.pk)
    assert document["governance"]["authority"]["grant"] == state.grant != ""
    assert document["governance"]["authority"]["approval"] == state.requests[0].id
    assert document["governance"]["constraints"][0]["seq"] == 1
    assert document["versions"]["code"]["tool:pay"].startswith("sha256:")


def test_it_names_the_keys_that_are_then_sent(house: House, world: World) -> None:
    run = house.waiting()
    named = {x["operation_id"]: x["key"] for x in written(run)["checkpoint"]["actions"]["may_send"]}
    house.decide(run, house.approver)
    advance(run)
    assert {i: k for i, k, _ in world.executed} == named


def test_it_holds_no_credential_and_no_secret(
    house: House, half: Run, sign_in: SignIn, monkeypatch: Any
) -> None:
    monkeypatch.setenv("BANK_TOKEN", "the-bank-token-1234")
    client = sign_in(house.operator)
    client.get("/inbox/")
    text = checkpoints.write(half.pk).text
    database = django_settings.DATABASES["default"]
    secrets: list[Any] = [
        django_settings.SECRET_KEY, *django_settings.SECRET_KEY_FALLBACKS, "the-bank-token-1234", PASSWORD,
        client.cookies[django_settings.SESSION_COOKIE_NAME].value, str(django_settings.CELERY_BROKER_URL),
        *(str(database[x]) for x in ("PASSWORD", "HOST") if database.get(x)),
        *User.objects.values_list("password", flat=True),
    ]  # fmt: skip
    assert [x for x in secrets if x and x in text] == []
    submissions = {x.submission for r in load(half.pk).requests for x in r.decisions}
    assert submissions and not [x for x in ("csrf", "sessionid", "pbkdf2", "argon2") if x in text]


def _changed(file: dict[str, Any]) -> None:
    file["checkpoint"]["governance"]["constraints"][0]["term"]["text"] = "Pay anything."


def _newer(file: dict[str, Any]) -> None:
    file["checkpoint"]["format"] = "handoff-checkpoint/9"


def _schema(file: dict[str, Any]) -> None:
    file["checkpoint"]["versions"]["schema"] = 2
    file["digest"] = digest_of(canonical(file["checkpoint"]))


def _artifact(file: dict[str, Any]) -> None:
    file["artifacts"] = {"sha256:" + "0" * 64: base64.b64encode(b"other").decode()}


def _child(file: dict[str, Any]) -> None:
    file["started"] = [{"checkpoint": file["checkpoint"], "digest": file["digest"]}]


def _part(file: dict[str, Any]) -> None:
    del file["checkpoint"]["identity"]["goals"]
    file["digest"] = digest_of(canonical(file["checkpoint"]))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_changed, "Something in it was changed"), (_newer, "handoff-checkpoint/9"), (_schema, "schema 2"),
        (_artifact, "other bytes"), (_child, "the runs that it started"), (_part, "goals"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_it_is_said_and_nothing_changes(
    house: House, half: Run, spoil: Callable[[dict[str, Any]], None], says: str
) -> None:
    file = written(half)
    spoil(file)
    with pytest.raises(CheckpointRefused, match=says):
        checkpoints.read(json.dumps(file).encode())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"checkpoint":7,"digest":"x"}',
        b'{"checkpoint":{"a":1,"a":2},"digest":"x"}',
    ],
)
def test_what_is_no_checkpoint_is_refused(text: bytes) -> None:
    with pytest.raises(CheckpointRefused):
        checkpoints.read(text)


def test_by_commands_once_and_only_where_it_is_not(
    house: House, half: Run, tmp_path: Path, sign_in: SignIn
) -> None:
    file, before = tmp_path / "half.json", load(half.pk)
    call_command("checkpoint", half.pk, to=file)
    assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(CommandError, match="is in this database already"):
        call_command("take_in", str(file), person="operator")
    empty()
    with pytest.raises(CommandError, match="may not start runs"):
        call_command("take_in", str(file), person="viewer")
    out = StringIO()
    call_command("take_in", str(file), person="operator", stdout=out)
    assert f"{half.pk} was taken in as of event {before.seq}" in out.getvalue()
    with pytest.raises(CommandError, match="Nothing was taken in"):
        call_command("take_in", str(file), person="operator")

    run = Run.objects.get(pk=half.pk)
    state = assert_replays(run)
    assert state.taken_in and (state.taken_in.seq, state.seq) == (before.seq, before.seq + 1)
    assert [type(r.event) for r in log(half.pk)] == [e.RunTakenIn]
    assert (state.goals, state.constraints, state.effects) == (
        before.goals,
        before.constraints,
        before.effects,
    )
    assert not chain_problem(half.pk)
    page = read(sign_in(house.viewer).get(f"/runs/{half.pk}/replay/")).part("replay").text
    assert "the chain" not in page.lower() and f"Events 1 to {before.seq} are not here" in page
    for address in ("", "handoff/", "events/", "plan/1/"):
        assert sign_in(house.operator).get(f"/runs/{half.pk}/{address}").status_code == 200


def test_a_log_that_only_says_it_was_taken_in_is_damaged(house: House, half: Run) -> None:
    text = checkpoints.write(half.pk).text.encode()
    empty()
    run = actions.take_in(person=house.operator, taken=checkpoints.read(text))
    steps = replay.replay(run.pk)
    assert steps and steps.broken_at is None
    Run.objects.filter(pk=run.pk).update(seq=run.seq + 5)
    assert "the run says" in chain_problem(run.pk)
    Run.objects.filter(pk=run.pk).update(seq=load(run.pk).seq)


def test_kept_bytes_come_along(house: House) -> None:
    run = house.waiting()
    actions.attach_file(
        person=house.operator, run_id=run.pk, name="slip.txt", data=b"paid by hand", media_type="text/plain",
        submission=uuid4(),
    )  # fmt: skip
    text = checkpoints.write(run.pk).text.encode()
    (kept,) = load(run.pk).artifacts.values()
    empty()
    with pytest.raises(artifacts.ArtifactMissing):
        artifacts.get(house.tenant.pk, kept.hash)
    actions.take_in(person=house.operator, taken=checkpoints.read(text))
    assert artifacts.get(house.tenant.pk, kept.hash) == b"paid by hand"


def test_what_cannot_be_asked_about_is_left_to_a_person(house: House, world: World) -> None:
    """A key that is honoured is no help where the run may have sent under it long ago."""
    run = house.start(tool="pay_by_key")
    text = checkpoints.write(run.pk).text.encode()
    empty()
    actions.take_in(person=house.operator, taken=checkpoints.read(text))
    state = advance(run)
    assert [r.code for r in state.reasons] == ["history_lost"]
    assert world.calls == []


def test_whoever_takes_it_in_lends_it_authority(house: House, half: Run) -> None:
    text = checkpoints.write(half.pk).text.encode()
    empty()
    house.agent.refresh_from_db()
    run = actions.take_in(person=house.operator, taken=checkpoints.read(text))
    (first,) = log(run.pk)
    assert first.actor.id == str(house.operator.pk) == load(run.pk).identity.principal
    assert load(run.pk).requests[-1].status is s.RequestStatus.VOIDED
