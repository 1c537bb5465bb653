"""Settings that cannot be used stop the program and say what to do; those left out are safe."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from console import env
from console.ports import NoFreePort, listen
from console.secret import secret_key
from runs.durations import PROFILES, UnknownProfile, profile
from tests.fixtures.processes import MANAGE

SHOW = """
from django.conf import settings as s
print(s.DEBUG, s.SESSION_COOKIE_SECURE, s.SECURE_PROXY_SSL_HEADER, s.SESSION_COOKIE_AGE, s.ALLOWED_HOSTS)
print(s.DATABASES["default"]["HOST"], "pool" in s.DATABASES["default"]["OPTIONS"], s.CELERY_BROKER_URL)
"""


def manage(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command as a person would run it, with nothing of the tests' in the environment."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "HOME"}}
    return subprocess.run(
        [sys.executable, MANAGE, *arguments],
        env={**kept, "HANDOFF_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(MANAGE).parent,
    )


def test_without_any_setting_all_is_safe_and_embedded(tmp_path: Path) -> None:
    first, second = manage(tmp_path, "shell", "--no-imports", "-c", SHOW).stdout.splitlines()
    assert first == "False False None 28800 ['localhost', '127.0.0.1', '[::1]']"
    assert second.split()[0].endswith("/run/s") or "/hoff-" in second
    assert "redis+socket://" in second


def test_only_the_web_process_has_a_pool(tmp_path: Path) -> None:
    shown = manage(tmp_path, "shell", "--no-imports", "-c", SHOW, HANDOFF_ROLE="web").stdout.splitlines()
    assert " True " in shown[1]


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (
            {"DATABASE_URL": "sqlite:///x.db", "HANDOFF_SECRET_KEY": "x"},
            "error: DATABASE_URL must begin with postgresql://",
        ),
        ({"DATABASE_URL": "postgresql://h/"}, "error: HANDOFF_SECRET_KEY is not set, and DATABASE_URL is"),
        ({"HANDOFF_PROFILE": "fast"}, "error: HANDOFF_PROFILE is 'fast'; use one of: demo, production, test"),
        ({"HANDOFF_TLS": "maybe"}, "error: HANDOFF_TLS is 'maybe'; use 1 or 0"),
    ],
)
def test_a_bad_value_is_named_without_a_traceback(
    tmp_path: Path, environment: dict[str, str], sentence: str
) -> None:
    done = manage(tmp_path, "check", **environment)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_url_is_read_whole() -> None:
    found = env.database("postgresql://kim%40x:p%2Fw@db.example:6432/hand%20off?sslmode=verify-full")
    assert (found["USER"], found["PASSWORD"], found["HOST"]) == ("kim@x", "p/w", "db.example")
    assert (found["PORT"], found["NAME"], found["OPTIONS"]) == (
        "6432",
        "hand off",
        {"sslmode": "verify-full"},
    )


def test_a_socket_folder_may_stand_in_a_database_url() -> None:
    assert env.database("postgresql://app@/app?host=/run/pg")["HOST"] == "/run/pg"


def test_a_database_url_without_a_name_is_refused() -> None:
    with pytest.raises(env.BadEnvironment, match="names no database"):
        env.database("postgresql://db.example")


def test_the_key_is_made_once_and_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HANDOFF_SECRET_KEY")
    file = tmp_path / "new" / "key"
    first = secret_key(file=file, made_for_you=True)
    assert secret_key(file=file, made_for_you=True) == first
    assert len(first) >= 50
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_taken_port_gives_the_next() -> None:
    with listen(port=0) as taken:
        port = taken.getsockname()[1]
        with listen(port=port) as following:
            assert following.getsockname()[1] > port


def test_no_free_port_is_said() -> None:
    """No port follows the last one."""
    with socket.socket() as last:
        last.bind(("127.0.0.1", 65535))
        last.listen()
        with pytest.raises(NoFreePort, match="are taken; ask for another"):
            listen(port=65535)


def test_every_profile_has_every_duration() -> None:
    for found in PROFILES.values():
        assert found.lease > found.sweep > timedelta()
        assert found.patience > found.tool_timeout >= found.dispatch_window
    with pytest.raises(UnknownProfile, match="production, demo, test"):
        profile("staging")


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "²"])
def test_a_number_that_is_none_stops_the_program(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HANDOFF_CONTEXT_BUDGET", value)
    with pytest.raises(env.BadEnvironment, match=r"HANDOFF_CONTEXT_BUDGET is .* use a whole number above 0"):
        env.number("HANDOFF_CONTEXT_BUDGET", default=7)
    monkeypatch.delenv("HANDOFF_CONTEXT_BUDGET")
    assert env.number("HANDOFF_CONTEXT_BUDGET", default=7) == 7


def test_the_demos_commands_are_found_in_a_second_terminal(tmp_path: Path) -> None:
    show = "from django.conf import settings as s; print(s.HANDOFF_AGENTS)"
    assert manage(tmp_path, "shell", "-v0", "-c", show).stdout == "[]\n"
    (tmp_path / "demo").touch()
    assert "examples.lives.agent:LIVES" in manage(tmp_path, "shell", "-v0", "-c", show).stdout
    assert "for each reason" in manage(tmp_path, "demo_lives", "--help").stdout
    mine = manage(tmp_path, "shell", "-v0", "-c", show, HANDOFF_AGENTS="tests.outside:PAYER")
    assert "examples" not in mine.stdout
