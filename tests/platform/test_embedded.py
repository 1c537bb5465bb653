"""The embedded servers survive every kind of end, and the next start succeeds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from console.embedded.home import LONGEST_SOCKET_FOLDER, Home
from console.embedded.identity import Identity, started, wait_until
from console.embedded.postgres import Postgres, postgres_child
from console.embedded.postgres_programs import NoPostgres, binaries, copy_programs
from console.embedded.postgres_user import closed_to
from console.embedded.process import Child, DidNotStart, Program
from console.embedded.valkey import answers, valkey_child


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.make()
    return made


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Postgres, Child]]:
    """A server as safe as the real one: the tests' own may lose rows."""
    home = Home(tmp_path_factory.mktemp("home"))
    home.make()
    server, child = postgres_child(home)
    yield server, child
    child.kill()


@pytest.fixture
def postgres(own_server: tuple[Postgres, Child]) -> tuple[Postgres, Child]:
    """That server, running and empty."""
    server, child = own_server
    if not child.running():
        child.start()
    child.wait_ready()
    with server.connect() as connection:
        connection.execute("drop table if exists kept")
    return own_server


def keep(server: Postgres, value: int) -> None:
    with server.connect() as connection:
        connection.execute("create table kept (value int)")
        connection.execute("insert into kept values (%s)", [value])


def kept(server: Postgres) -> list[int]:
    with server.connect() as connection:
        return [int(str(row[0])) for row in connection.execute("select value from kept order by value")]


def test_rows_survive_a_kill_of_the_whole_group(postgres: tuple[Postgres, Child]) -> None:
    server, child = postgres
    keep(server, 1)
    child.kill()
    child.start()
    child.wait_ready()
    assert kept(server) == [1]


def test_rows_survive_a_kill_of_the_leader_alone(postgres: tuple[Postgres, Child]) -> None:
    server, child = postgres
    keep(server, 1)
    assert child.process is not None
    os.kill(child.process.pid, signal.SIGKILL)
    child.reap()
    child.start()
    child.wait_ready()
    assert kept(server) == [1]


def test_a_stale_pid_file_that_names_a_living_process_is_no_obstacle(
    postgres: tuple[Postgres, Child],
) -> None:
    server, child = postgres
    pid_file = server.data / "postmaster.pid"
    written = pid_file.read_text().splitlines()
    child.kill()
    pid_file.write_text("\n".join([str(os.getpid()), *written[1:]]))
    (server.home.sockets / ".s.PGSQL.5432.lock").write_text("\n".join([str(os.getpid()), *written[1:]]))
    child.start()
    child.wait_ready()
    assert server.answers()


def test_an_interrupted_first_start_is_begun_again(home: Home) -> None:
    (home.postgres / "data.new").mkdir(parents=True)
    (home.postgres / "data.new" / "PG_VERSION").write_text("18")
    server, child = postgres_child(home, losable=True)
    child.start()
    child.wait_ready()
    assert server.answers()
    child.kill()


def test_data_of_another_major_is_refused(home: Home) -> None:
    server, child = postgres_child(home, losable=True)
    server.data.mkdir(parents=True)
    (server.data / "PG_VERSION").write_text("12\n")
    with pytest.raises(NoPostgres, match="was made by PostgreSQL 12"):
        child.start()


def test_the_database_is_made_once_and_speaks_utf8(postgres: tuple[Postgres, Child]) -> None:
    server, _child = postgres
    server.make_database()
    server.make_database()
    with server.connect(database="app") as connection:
        encoding = connection.execute("show server_encoding").fetchone()
        address = connection.execute("show listen_addresses").fetchone()
    assert (encoding, address) == (("UTF8",), ("",))


def test_the_socket_is_private(postgres: tuple[Postgres, Child]) -> None:
    server, _child = postgres
    assert server.home.sockets.stat().st_mode & 0o077 == 0


def test_a_long_path_gets_a_short_socket_folder(tmp_path: Path) -> None:
    deep = Home(tmp_path / ("x" * LONGEST_SOCKET_FOLDER))
    assert len(str(deep.sockets)) < LONGEST_SOCKET_FOLDER
    assert deep.sockets != Home(tmp_path / ("y" * LONGEST_SOCKET_FOLDER)).sockets


def test_the_broker_answers_again_after_a_kill(home: Home) -> None:
    child = valkey_child(home)
    for _ in range(2):
        child.start()
        child.wait_ready()
        assert answers(home)
        child.kill()
    assert not answers(home)


SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]
# Starts a child and is then killed itself, as the out-of-memory killer would.
PARENT = """
import os, signal, sys
from pathlib import Path
from console.embedded.home import Home
from console.embedded.process import Child, Program
sleeper = [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); print(1); time.sleep(60)"]
child = Child(Program(name="sleeper", argv=sleeper, ready=lambda _c: True), Home(Path(sys.argv[1])))
child.start()
while not child.log.stat().st_size: pass
os.kill(os.getpid(), signal.SIGKILL)
"""


def sleeper(home: Home) -> Child:
    return Child(Program(name="sleeper", argv=SLEEPER, ready=lambda _child: True, grace=1), home)


def test_what_a_killed_parent_left_is_ended_by_the_next_start(home: Home) -> None:
    subprocess.run(
        [sys.executable, "-uc", PARENT, str(home.root)],
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    child = sleeper(home)
    left = Identity.read(child.record)
    assert left is not None
    assert left.alive()
    child.start()
    assert not left.alive()
    child.kill()


def test_a_child_dies_with_its_parent(home: Home) -> None:
    gentle = PARENT.replace("signal.signal(15, signal.SIG_IGN); ", "")
    subprocess.run(
        [sys.executable, "-uc", gentle, str(home.root)],
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    left = Identity.read(sleeper(home).record)
    assert left is not None
    assert wait_until(lambda: not left.alive(), seconds=5)


def test_another_process_with_the_recorded_pid_is_left_alone(home: Home) -> None:
    with subprocess.Popen(SLEEPER, start_new_session=True) as other:
        child = sleeper(home)
        Identity(other.pid, "another boot:1", "token").write(child.record)
        child.start()
        assert started(other.pid) is not None
        child.kill()
        other.kill()


def test_a_torn_record_is_no_obstacle(home: Home) -> None:
    child = sleeper(home)
    child.record.write_text('{"pid": 1')
    child.start()
    assert child.running()
    child.kill()


def test_one_that_ends_at_once_names_its_log(home: Home) -> None:
    child = Child(Program(name="broken", argv=["false"], ready=lambda _child: False), home)
    child.start()
    with pytest.raises(DidNotStart, match=r"broken ended with 1; its log is .*broken\.log"):
        child.wait_ready()
    child.reap()


def test_a_killed_backend_leaves_the_others_able_to_reconnect(postgres: tuple[Postgres, Child]) -> None:
    server, _child = postgres
    keep(server, 1)
    with server.connect() as connection:
        psutil.Process(connection.info.backend_pid).kill()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
    assert wait_until(server.answers, seconds=10)
    assert kept(server) == [1]


def test_the_way_to_a_folder_is_open_or_the_closed_one_is_named(tmp_path: Path) -> None:
    """For the case that root has to give PostgreSQL to another user."""
    inner = tmp_path / "closed" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    stranger = os.geteuid() + 1
    assert closed_to(stranger, inner) in {tmp_path / "closed", *tmp_path.parents, tmp_path}
    assert closed_to(stranger, Path("/usr/bin")) is None
    assert closed_to(os.geteuid(), tmp_path / "closed") in {None, *tmp_path.parents}


def test_copied_programs_run(tmp_path: Path) -> None:
    folder, major = binaries()
    copy_programs(folder, tmp_path / "programs")
    copy = tmp_path / "programs" / folder.relative_to(folder.parents[2]) / "postgres"
    said = subprocess.run([copy, "--version"], capture_output=True, text=True, check=True).stdout
    assert f" {major}." in said
