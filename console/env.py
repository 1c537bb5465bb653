"""Settings come from the environment; a value that cannot be read stops the program and says why."""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


class BadEnvironment(Exception):
    """An environment variable has a value that cannot be used: the message names it and what it may be."""


def text(name: str, *, default: str = "") -> str:
    """The variable without surrounding blanks; the default where it is unset or blank."""
    return os.environ.get(name, "").strip() or default


def words(name: str, *, default: str = "") -> list[str]:
    """A comma separated list, without blanks and empty parts."""
    return [part.strip() for part in text(name, default=default).split(",") if part.strip()]


def flag(name: str, *, default: bool = False) -> bool:
    """`1`, `true`, `yes`, `on` or `0`, `false`, `no`, `off`, in any case."""
    value = text(name).lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    if value:
        raise BadEnvironment(f"{name} is {value!r}; use 1 or 0")
    return default


def number(name: str, *, default: int) -> int:
    """A whole number above zero."""
    value = text(name, default=str(default))
    if value.isascii() and value.isdecimal() and int(value):
        return int(value)
    raise BadEnvironment(f"{name} is {value!r}; use a whole number above 0")


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def lengths(name: str) -> dict[str, timedelta]:
    """Names with lengths of time: `order=5m,price=30s`. Units are s, m, h and d."""
    found = {}
    for part in words(name):
        kind, _equals, length = part.partition("=")
        number_, unit = length.strip()[:-1], length.strip()[-1:]
        whole = number_.isascii() and number_.isdecimal() and len(number_) < 10 and int(number_) > 0
        if not kind.strip() or not whole or unit not in _UNITS:
            raise BadEnvironment(f"{name} has {part!r}; use a name and a length above 0, such as order=5m")
        found[kind.strip()] = timedelta(seconds=int(number_) * _UNITS[unit])
    return found


def choice(name: str, *, among: Collection[str], default: str) -> str:
    """One of a few words."""
    value = text(name, default=default)
    if value not in among:
        raise BadEnvironment(f"{name} is {value!r}; use one of: {', '.join(sorted(among))}")
    return value


def database(url: str) -> dict[str, Any]:
    """Django's settings for a `postgresql://user:password@host:port/name?option=value` address.

    Options go to libpq: `?host=/run/postgresql` names a socket folder, `?sslmode=verify-full` asks for TLS.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise BadEnvironment(
            "DATABASE_URL must begin with postgresql://, the only database this program uses"
        )
    name = unquote(parts.path.removeprefix("/"))
    if not name:
        raise BadEnvironment("DATABASE_URL names no database: postgresql://user:password@host:5432/NAME")
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", unquote(parts.hostname or "")),
        "PORT": options.pop("port", str(parts.port or "")),
        "OPTIONS": options,
    }
