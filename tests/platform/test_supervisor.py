"""The supervisor, run as a person runs it: a process with real children."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.embedded.control import NotRunning, Refused, ask
from console.embedded.home import Home
from console.embedded.identity import wait_until
from console.ports import listen
from tests.fixtures.processes import MANAGE, answers


class Installation:
    """`manage.py up` in a home of its own."""

    wanted = frozenset({"postgres", "valkey", "worker", "beat", "web"})

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        self.said = folder.parent / "said.txt"
        self.process: subprocess.Popen[bytes] | None = None

    def environment(self) -> dict[str, str]:
        left_out = (
            "DATABASE_URL",
            "CELERY_BROKER_URL",
            "HANDOFF_PROFILE",
            "HANDOFF_AGENTS",
            "HANDOFF_SECRET_KEY",
        )
        kept = {name: value for name, value in os.environ.items() if name not in left_out}
        return {**kept, "HANDOFF_HOME": str(self.home.root)}

    def up(self, *arguments: str) -> Installation:
        command = [sys.executable, MANAGE, "up", *arguments]
        with self.said.open("wb") as out:
            self.process = subprocess.Popen(
                command, env=self.environment(), stdout=out, stderr=out, start_new_session=True
            )
        return self

    def wait(self) -> Installation:
        assert wait_until(lambda: self.ended() or self.all_ready(), seconds=60, every=0.1)
        assert not self.ended(), self.said.read_text()
        return self

    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def all_ready(self) -> bool:
        try:
            found = self.processes()
        except (NotRunning, Refused):
            return False
        return self.wanted <= found.keys() and all(process["ready"] for process in found.values())

    def processes(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = ask(self.home, "status")["processes"]
        return found

    def pid(self, name: str) -> int | None:
        found: int | None = self.processes()[name]["pid"]
        return found

    def swept_since(self, moment: float) -> bool:
        """True once a sweep went the whole way after that: beat, broker, worker, database."""
        try:
            with urllib.request.urlopen(f"{self.url()}/readyz", timeout=5) as answer:
                age = json.load(answer)["parts"]["sweep"]["age_seconds"]
        except urllib.error.HTTPError:
            return False
        return age is not None and age < time.monotonic() - moment

    def url(self) -> str:
        return str(ask(self.home, "status")["url"])

    def pids(self) -> list[int]:
        return [process["pid"] for process in self.processes().values()]

    def end(self) -> None:
        """For good, however it is."""
        if not self.ended():
            self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=40)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One installation for all tests of this file: making a new one takes seconds. Port 8000 is taken."""
    made = Installation(tmp_path_factory.mktemp("installation") / "home")
    taken = _taken(8000)
    yield made
    if not made.ended():
        made.signal(signal.SIGKILL)
    if taken:
        taken.close()


def _taken(port: int) -> socket.socket | None:
    try:
        return listen(port=port)
    except OSError:
        return None


@pytest.fixture
def running(installation: Installation) -> Installation:
    if installation.ended():
        installation.up()
    return installation.wait()


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_all_come_up_and_the_pages_answer(running: Installation) -> None:
    assert answers(f"{running.url()}/healthz")
    assert re.search(r":80(0[1-9]|[1-9]\d)$", running.url()), "8000 is taken, so the next free port is used"


def test_what_is_killed_is_started_again(running: Installation) -> None:
    """One after the other, the later ones while the earlier are still starting."""
    for name, process in running.processes().items():
        os.kill(process["pid"], signal.SIGKILL)
        assert wait_until(lambda: running.pid(name) not in {process["pid"], None}, seconds=20, every=0.1)  # noqa: B023
    assert wait_until(running.all_ready, seconds=30, every=0.1), running.processes()
    again = time.monotonic()
    assert wait_until(lambda: running.swept_since(again), seconds=40, every=0.5)


def test_a_stopped_worker_stays_down_until_it_is_started(running: Installation) -> None:
    ask(running.home, "kill", name="worker", keep_down=True)
    ask(running.home, "stop", name="worker")
    assert running.processes()["worker"]["state"] == "stopped"
    ask(running.home, "start", name="worker")
    assert running.processes()["worker"]["ready"]


def test_an_unknown_process_is_refused_by_name(running: Installation) -> None:
    with pytest.raises(Refused, match="there are: postgres, valkey, worker, beat, web"):
        ask(running.home, "stop", name="database")


def test_a_second_supervisor_is_told_of_the_first(running: Installation) -> None:
    again = subprocess.run(
        [sys.executable, MANAGE, "up"], env=running.environment(), capture_output=True, text=True, check=False
    )
    assert again.returncode == 1
    assert f"Process {running.process.pid if running.process else 0} runs in" in again.stderr


def test_a_killed_supervisor_leaves_nothing_that_hinders_the_next(running: Installation) -> None:
    pids = running.pids()
    running.signal(signal.SIGKILL)
    running.up().wait()
    assert all(gone(pid) for pid in pids)
    assert answers(f"{running.url()}/healthz")


def test_it_stops_in_order_and_leaves_the_data(running: Installation) -> None:
    pids = running.pids()
    assert running.signal(signal.SIGINT) == 0
    assert all(gone(pid) for pid in pids)
    stopped = re.findall(r"^(\w+) +stopped$", running.said.read_text(), re.MULTILINE)
    assert stopped[-2:] == ["valkey", "postgres"]
    assert (running.home.postgres / "data" / "PG_VERSION").exists()
    with pytest.raises(NotRunning):
        ask(running.home, "status")


def test_a_command_may_be_run_on_it(installation: Installation) -> None:
    if not installation.ended():
        installation.signal(signal.SIGTERM)
    installation.up("--servers", "--then", "showmigrations")
    assert installation.process is not None
    assert installation.process.wait(timeout=60) == 0
    assert "[X] 0001_initial" in installation.said.read_text()
