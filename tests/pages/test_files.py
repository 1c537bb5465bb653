"""Files of a run: attached by those who operate it, downloaded by those who may see it, rendered for nobody."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from pytest import MonkeyPatch

from runs import artifacts
from runs.ledger import load
from runs.machine import events as e
from runs.models import Artifact, Run
from runs.pages import files as shown_files
from runs.views import files
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import read
from tests.people import House, advance, assert_replays

BAD = b"<script>alert(1)</script>"


def attach(client: Client, run: Run, data: bytes = BAD, name: str = "x.html", **more: str) -> HttpResponse:
    file = SimpleUploadedFile(name, data, content_type="text/html")
    sent = {"submission": str(uuid4()), "file": file, **more}
    return client.post(f"/runs/{run.pk}/artifacts/", sent, follow=True)  # type: ignore[return-value]


@pytest.fixture
def run(house: House) -> Run:
    return house.waiting()


def test_a_file_is_attached_once_and_comes_back_as_it_was(house: House, run: Run, sign_in: SignIn) -> None:
    client, before = sign_in(house.operator), load(run.pk)
    submission = str(uuid4())
    for _ in range(2):
        page = read(attach(client, run, submission=submission))

    assert "The file was attached." in page.part("result").text
    state = assert_replays(run)
    (kept,) = state.artifacts.values()
    assert (kept.name, kept.kind, kept.media_type, kept.size) == ("x.html", "file", "text/html", len(BAD))
    assert (state.state, state.requests, state.plans) == (before.state, before.requests, before.plans)
    for who in (house.operator, house.approver, house.viewer):
        assert sign_in(who).get(f"/runs/{run.pk}/artifacts/1/").content == BAD


def test_a_file_is_saved_and_never_shown(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    attach(client, run, name="a\u202egnp.exe\r\nX-Evil: 1.html")
    answer = client.get(f"/runs/{run.pk}/artifacts/1/")
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert answer["Content-Disposition"].startswith("attachment; filename=")
    assert "X-Evil" not in answer.headers
    assert "\u202e" not in answer["Content-Disposition"] and "%E2%80%AE" not in answer["Content-Disposition"]
    assert answer["Cache-Control"] == "no-store, private"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "_.._etc_passwd"), ("a\x00b", "a_u0000b"), ("\u202egnp.exe", "_gnp.exe"), (" ... ", ""),
        ("Beleg “7”.pdf", "Beleg “7”.pdf"), ("x" * 300 + ".pdf", "x" * 196 + ".pdf"), ('a"b;c', "a_b;c"),
    ],
)  # fmt: skip
def test_names_that_could_be_mistaken_are_made_plain(name: str, safe: str) -> None:
    assert shown_files.safe_name(name) == safe


def test_strangers_find_nothing_even_with_the_same_bytes(house: House, run: Run, sign_in: SignIn) -> None:
    attach(sign_in(house.operator), run)
    stranger = sign_in(house.stranger)
    artifacts.put(tenant_id=house.stranger.tenants().get().pk, data=BAD, media_type="text/html")
    for path in ("", "1/", "2/"):
        assert stranger.get(f"/runs/{run.pk}/artifacts/{path}").status_code == 404
    assert sign_in(house.viewer).get(f"/runs/{run.pk}/artifacts/2/").status_code == 404


def test_those_who_only_look_have_no_form_and_cannot_send_one(
    house: House, run: Run, sign_in: SignIn
) -> None:
    client = sign_in(house.viewer)
    assert "form" not in [
        x.tag for x in read(client.get(f"/runs/{run.pk}/artifacts/")).all("input", type="file")
    ]
    assert attach(client, run).status_code == 403
    assert not Artifact.objects.exists()


def test_no_file_an_empty_one_and_one_too_large_are_refused_by_name(
    house: House, run: Run, sign_in: SignIn, monkeypatch: MonkeyPatch
) -> None:
    client = sign_in(house.operator)
    monkeypatch.setattr(files, "LARGEST_FILE", 10)
    for data, said in (
        (b"", "Choose a file that is not empty"),
        (b"x" * 11, "has 11\u00a0bytes; at most 10"),
    ):
        answer = attach(client, run, data)
        assert answer.status_code == 422
        assert said.replace("\u00a0", " ") in read(answer).part("errors").text.replace("\u00a0", " ")
    assert load(run.pk).artifacts == {} and not Artifact.objects.exists()


def test_a_storage_that_is_away_is_named(
    house: House, run: Run, sign_in: SignIn, monkeypatch: MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(type(artifacts.storage()), "_save", refuse)
    answer = attach(sign_in(house.operator), run)
    assert answer.status_code == 422
    assert "did not take the file. Nothing was recorded. Try again later." in read(answer).part("errors").text
    assert load(run.pk).artifacts == {}


def test_a_file_that_was_changed_or_lost_is_not_sent(house: House, run: Run, sign_in: SignIn) -> None:
    client = sign_in(house.operator)
    attach(client, run)
    path = Path(artifacts.storage().path(Artifact.objects.get().location))
    path.write_bytes(b"CHANGED")
    for said in ("has other bytes. They were not used", "its file is gone"):
        answer = client.get(f"/runs/{run.pk}/artifacts/1/")
        assert answer.status_code == 409
        assert said in answer.content.decode() and b"CHANGED" not in answer.content
        path.unlink(missing_ok=True)


def test_a_file_may_be_attached_to_a_run_that_is_over(house: House, world: World, sign_in: SignIn) -> None:
    run = house.start()
    over = advance(run)
    assert attach(sign_in(house.operator), run).status_code == 200
    assert load(run.pk).state is over.state
    assert len(load(run.pk).artifacts) == 1


def test_the_run_page_leads_to_its_files_and_the_timeline_tells_of_them(
    house: House, run: Run, sign_in: SignIn
) -> None:
    client = sign_in(house.operator)
    attach(client, run, name="note.pdf")
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert f'href="/runs/{run.pk}/artifacts/"' in page
    assert "kept the file “note.pdf” (25" in page
    assert [x.name for x in load(run.pk).artifacts.values()] == ["note.pdf"]
    assert e.ArtifactKept.__name__ in client.get(f"/runs/{run.pk}/events/").content.decode()
